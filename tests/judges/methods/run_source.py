"""Run the prompt code of a source's checkout, in a process of its own, against a model server:
``python run_source.py SOURCE CHECKOUT URL RUN.json``. What that code imports beside its prompts,
and is not installed, is an empty module here.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import openai


def empty(name: str, **attributes: Any) -> None:
    """Put a module of this name in place, unless it is installed."""
    module = ModuleType(name)
    vars(module).update(attributes)
    sys.modules.setdefault(name, module)


def package(name: str, folder: Path) -> None:
    """Put a package in place whose own ``__init__`` is not run."""
    module = ModuleType(name)
    module.__path__ = [str(folder)]
    sys.modules[name] = module


class Tokenizer:
    """Of texts that are shorter than any limit."""

    @classmethod
    def from_pretrained(cls, name: str) -> Tokenizer:
        return cls()

    def encode(self, text: str, **limits: object) -> str:
        return text

    def decode(self, tokens: str, **how: object) -> str:
        return tokens


def webvoyager(checkout: Path, client: openai.OpenAI, run: dict[str, Any]) -> None:
    sys.path.insert(0, str(checkout / "evaluation"))
    module = importlib.import_module("auto_eval")
    module.auto_eval_by_gpt4v(run["folder"], client, "gpt-4o", run["screenshots"])


def insta(checkout: Path, client: openai.OpenAI, run: dict[str, Any]) -> None:
    empty("transformers", AutoTokenizer=Tokenizer)
    empty("vllm", LLM=None, SamplingParams=None)
    package("insta", checkout / "insta")
    package("insta.configs", checkout / "insta" / "configs")
    empty("insta.utils", safe_call=None, BrowserStatus=None)
    judge = importlib.import_module("insta.judge")
    config = importlib.import_module("insta.configs.judge_config").get_judge_config(
        client_type="openai",
        client_kwargs={"api_key": "none", "base_url": str(client.base_url)},
        generation_kwargs={"model": "gpt-4o"},
    )
    made = judge.BrowserJudge(config)
    made.get_judgment(run["pages"], run["said"], run["goal"], last_actions=5, last_obs=5)


def webjudge(checkout: Path, client: openai.OpenAI, run: dict[str, Any]) -> None:
    src = checkout / "src"
    sys.path.insert(0, str(src))
    empty("backoff", expo=None, on_exception=lambda *_, **__: lambda function: function)
    for name in ("webeval", "webeval.benchmarks", "webeval.benchmarks.om2w"):
        package(name, src)  # of the copy in microsoft/fara
    package("webeval.benchmarks.om2w.impl", checkout)
    package("webeval.benchmarks.om2w.impl.src", src)

    class Model:
        def generate(self, messages: Any, **_: object) -> list[str]:
            reply = client.chat.completions.create(model="gpt-4o", messages=messages)
            return [str(reply.choices[0].message.content)]

        async def agenerate(self, messages: Any) -> list[str]:
            return await asyncio.to_thread(self.generate, messages)

    model, shots, goal = Model(), run["shots"], run["goal"]
    if run["variant"] == "general":
        module = importlib.import_module("methods.webjudge_general_eval")
        asked = module.WebJudge_general_eval(
            goal, run["goal_images"], run["thoughts"], run["actions"], shots, model, 3
        )
    else:
        module = importlib.import_module("methods.webjudge_online_mind2web")
        asked = module.WebJudge_Online_Mind2Web_eval(goal, run["actions"], shots, model, 3)
    model.generate(asyncio.run(asked)[0])


if __name__ == "__main__":
    name, checkout_, url, file = sys.argv[1:]
    sources = {"webvoyager": webvoyager, "insta": insta, "online-mind2web": webjudge}
    asking = openai.OpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0)
    sources[name](Path(checkout_), asking, json.loads(Path(file).read_text()))

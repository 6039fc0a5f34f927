"""The overlay that a popup fault puts into a page: our own, and within 1280 × 720 pixels.

``full`` accessibility is a dialog with a name and a button with text. ``none`` looks the same, but
its close control is an icon without role, name or text, as many real overlays have it.
"""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from trajudge.proxy.plans.faults import PopupFault

BEACON = "/__trajudge/popup/"
"""The path, on the site's own host, to which a closed overlay reports."""

_TITLE = "Get our weekly offers"
_TEXT = "Leave your address and receive a voucher for your next order."
_CLOSE = "No, thanks"

_LAYOUTS = {
    "modal": "inset:0;background:rgba(20,24,32,.55)",
    "banner": "left:0;right:0;bottom:0;height:220px;background:rgba(20,24,32,.85)",
    "offscreen": "left:0;top:2400px;width:100%;height:400px;background:rgba(20,24,32,.55)",
}
_STYLE = """
.{id}{{position:{position};{layout};z-index:2147483647;display:flex;
align-items:center;justify-content:center;font:16px/1.5 sans-serif}}
.{id}[hidden]{{display:none}}
.{id} .box{{position:relative;width:480px;padding:24px 56px 24px 28px;border-radius:8px;
background:#fff;color:#1b1f27}}
.{id} .title{{margin:0 0 8px;font-size:21px;font-weight:600}}
.{id} .text{{margin:0 0 14px}}
.{id} button{{font:inherit;padding:6px 16px;cursor:pointer}}
.{id} .icon{{position:absolute;top:12px;right:12px;width:28px;height:28px;cursor:pointer;
background:linear-gradient(45deg,transparent 46%,#1b1f27 46% 54%,transparent 54%),
linear-gradient(-45deg,transparent 46%,#1b1f27 46% 54%,transparent 54%)}}
"""
_SCRIPT = """
(function(){{var p=document.querySelector('.{id}');if(!p)return;
{show}
p.querySelector('.close').addEventListener('click',function(){{p.remove();
try{{navigator.sendBeacon('{beacon}{id}')}}catch(e){{}}}})}})();
"""


class PopupOverlay(NamedTuple):
    """An overlay for one page load. ``id`` is its class in the page and its name in events."""

    id: str
    nonce: str
    fault: PopupFault

    def html(self) -> bytes:
        """Return the elements, in ASCII: they fit every charset that extends it."""
        fault = self.fault
        delayed = fault.variant == "delayed"
        layout = _LAYOUTS["modal" if delayed else fault.variant]
        position = "absolute" if fault.variant == "offscreen" else "fixed"
        style = _STYLE.format(id=self.id, layout=layout, position=position)
        shows = f"setTimeout(function(){{p.hidden=false}},{round(fault.seconds * 1000)});"
        script = _SCRIPT.format(id=self.id, beacon=BEACON, show=shows if delayed else "")
        hidden = " hidden" if delayed else ""
        return (
            f'<style nonce="{self.nonce}">{style}</style>'
            f'<div class="{self.id}"{hidden}>{self._box()}</div>'
            f'<script nonce="{self.nonce}">{script}</script>'
        ).encode("ascii")

    def _box(self) -> str:
        title, text, close = escape(_TITLE), escape(_TEXT), escape(_CLOSE)
        if self.fault.accessibility == "none":
            return (
                f'<div class="box"><div class="title">{title}</div><div class="text">{text}</div>'
                '<span class="icon close"></span></div>'
            )
        return (
            f'<div class="box" role="dialog" aria-modal="true" aria-labelledby="{self.id}-title">'
            f'<h2 class="title" id="{self.id}-title">{title}</h2><p class="text">{text}</p>'
            f'<button type="button" class="close">{close}</button></div>'
        )

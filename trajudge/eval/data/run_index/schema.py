"""The tables of a run's index.

Truth values are 1, 0 or NULL. ``expert`` and ``rule`` stand beside every judgment, so that a filter
needs no other table: ``expert`` is -1 where the expert was unsure, ``rule`` is the official
reward's verdict, ``inclusion`` the probability with which a label's trajectory was drawn. ``place``
counts the lines of a run's file from 0, ``offset`` and ``length`` find the line. ``said`` and
``told`` find words of whole texts (FTS5), which they do not keep: their rows have the numbers of
judgments and of trajectories.
"""

from __future__ import annotations

VERSION = 3

TABLES = """
create table meta (name text primary key, value text not null) without rowid;
create table trajectory (
  id integer primary key,
  benchmark text not null, agent text not null, task_id text not null, attempt integer not null,
  goal text, steps integer, answer text,
  reward real, rule integer, expert integer, side_effect integer, repetition integer, split text,
  inclusion real,
  judges integer not null default 0, yes integer not null default 0,
  no integer not null default 0, failed integer not null default 0,
  unique (benchmark, agent, task_id, attempt)
);
create table label (
  trajectory integer not null, annotator text not null, role text not null,
  success integer, side_effect integer, repetition integer, optimality integer,
  primary key (trajectory, annotator, role)
) without rowid;
create table judgment (
  id integer primary key, run integer not null, place integer not null,
  offset integer not null, length integer not null,
  trajectory integer not null, judge text not null, sample integer not null, status text not null,
  success integer, side_effect integer, repetition integer, optimality integer, process integer,
  score real, cost real, tokens integer not null, seconds real, flags integer not null,
  head text not null, expert integer, rule integer
);
create table pending (
  benchmark text, agent text, task_id text, attempt integer, sample integer, request text,
  seconds real
);
create virtual table said using fts5(
  reasoning, content = '', tokenize = 'unicode61 remove_diacritics 2'
);
create virtual table told using fts5(
  goal, answer, content = '', tokenize = 'unicode61 remove_diacritics 2'
);
"""
INDEXES = """
create index if not exists judgment_trajectory on judgment (trajectory, judge, sample);
create index if not exists judgment_judge on judgment (judge, status, score, id);
create index if not exists judgment_status on judgment (status, id);
create index if not exists judgment_cost on judgment (cost, id);
create index if not exists judgment_score on judgment (score, id);
create index if not exists judgment_seconds on judgment (seconds, id);
"""
VOTES = """
update trajectory set (judges, yes, no, failed) = (
  select count(*), coalesce(sum(vote = 1), 0), coalesce(sum(vote = 0), 0),
         coalesce(sum(vote is null), 0)
  from (
    select case when sum(ok) > 0 and count(said) > 0 then 2 * sum(said) > count(said) end as vote
    from (
      select judge, status = 'ok' as ok, case when status = 'ok' then success end as said
      from judgment where judgment.trajectory = trajectory.id
    ) group by judge
  )
) where id in (select trajectory from judgment where judgment.id >= ?)
"""
"""Counts each judge once a trajectory: of several samples the strict majority of those that
answered, as ``eval.scoring`` counts them."""

ELIDED, REPAIRED = 1, 2
FLAGS = {"elided": ELIDED, "repaired": REPAIRED}
HEAD = 160
"""Characters of a judgment's reasoning that stand in the index."""

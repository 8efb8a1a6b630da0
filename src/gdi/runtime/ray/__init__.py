"""The Ray runtime: the same components, each in its own process, on one or more machines.

It needs the extra ``ray``.

``cluster`` finds or starts Ray. ``actor_worker``, ``services``, ``collector_worker``, ``learner_worker`` and
``evaluator_worker`` are the components as Ray actors, and ``processes`` and ``tensors`` are what they share. ``pool``
keeps the requested number of actors alive, which it reads through ``actor_count``. ``error_mapping`` interprets Ray's
errors, and ``system`` assembles everything.

Each process calls its step of ``gdi.iteration``. This package contains no code for acting or learning.
"""

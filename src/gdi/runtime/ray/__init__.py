"""The Ray runtime: the same parts, each in a process of its own, on one machine or many (extra ``ray``).

``cluster`` finds or starts Ray; ``acting``, ``asked``, ``data``, ``learning`` and ``evaluating`` are the parts as Ray
actors; ``processes`` and ``tensors`` are what these share; ``pool`` keeps the acting ones alive, as many as ``wanted``
says; ``system`` puts all together; ``failures`` says what Ray's errors mean. Each process calls its step of
``gdi.iteration``: nothing here knows how to act or learn.
"""

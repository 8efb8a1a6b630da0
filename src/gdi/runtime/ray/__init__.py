"""The Ray runtime: the same parts, each in a process of its own, on one machine or many (extra ``ray``).

``cluster`` finds or starts Ray; ``workers`` are the parts as Ray actors; ``pool`` keeps the acting ones alive;
``system`` puts them together; ``failures`` says what can go wrong. Nothing here knows how to act or learn.
"""

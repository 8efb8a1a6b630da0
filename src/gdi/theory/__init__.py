"""The paper's theory, executable: operators, transports, theorems and the taxonomy, in NumPy alone.

Read in this order: ``measures`` (the reweighting ``mu exp(g) / Z`` and what it does to expectations),
``transport`` (the couplings of the lemmas), ``mdp`` and ``policies`` (exact finite MDPs), ``operators`` (E
and T), ``monotonicity`` (Theorems 1 and 2), ``learning`` (whole runs from exact gradients), ``taxonomy``
(GDI-I^n and GDI-H^n, derived). ``claims`` executes everything above on random instances; ``counterexamples``
drops one assumption at a time.
"""

"""The paper's theory as code: operators, transports, theorems and the taxonomy, in NumPy alone.

Read the modules in this order. ``measures`` has the reweighting ``mu exp(g) / Z`` and its effect on expectations, and
``transport`` the couplings of the lemmas. ``mdp`` and ``policies`` are exact finite MDPs, and ``operators`` are E and
T. ``monotonicity`` has Theorems 1 and 2, ``learning`` whole runs from exact gradients, and ``taxonomy`` derives GDI-I^n
and GDI-H^n.

``claims`` tests all of this on random instances. ``counterexamples`` drops one assumption at a time.
"""

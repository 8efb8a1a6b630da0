"""Acting and data: actors play, a collector cuts and repeats, a parameter server hands θ on.

Nothing is imported here: a process that holds only the collector needs no torch.
"""

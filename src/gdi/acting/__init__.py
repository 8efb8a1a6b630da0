"""Acting: actors play the environments, and a parameter server passes the parameters (θ) on to them.

This module imports nothing, because a process that holds only the parameter server does not need torch.
"""

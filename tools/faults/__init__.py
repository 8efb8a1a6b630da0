"""The fault campaign: runs are killed, their folders damaged, their disks filled, and their commands fed nonsense."""

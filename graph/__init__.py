"""The repair state machine, its methods, and how a stream of episodes runs through it."""

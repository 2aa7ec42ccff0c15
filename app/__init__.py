"""What people start: the ``merit`` command line and the graph that LangGraph Studio loads."""

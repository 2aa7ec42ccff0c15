"""Who judges an attempt when no benchmark does."""

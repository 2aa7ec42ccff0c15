"""A catalogue of databases: schema, read-only killable execution, the AST gate."""

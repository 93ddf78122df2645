"""The only place where stages meet: each study is the order in which stages are called."""

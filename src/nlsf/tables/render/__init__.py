"""Tables as text: Markdown, CSV, LaTeX, on a console, inside of documents."""

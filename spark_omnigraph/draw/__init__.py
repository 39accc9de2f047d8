"""What a person looks at: values → texts of HTML, SVG and Mermaid. Pure: no graph, no Arrow, no file."""

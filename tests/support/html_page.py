"""A page as a test reads it: its elements with their attributes and text, and every tag closed."""

from html.parser import HTMLParser

VOID = {"meta", "input", "br", "wbr", "img", "link"}


class Page(HTMLParser):
    """The elements of a page, each with its attributes and text; unbalanced tags are an error."""

    def __init__(self, text):
        super().__init__()
        self.elements, self._open = [], []
        self.feed(text)
        self.close()
        assert not self._open, f"left open: {[name for name, *_ in self._open]}"

    def handle_starttag(self, tag, attrs):
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"an attribute twice in {tag} {attrs}"
        element = (tag, dict(attrs), [])
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs), []))

    def handle_endtag(self, tag):
        assert self._open, f"</{tag}> closes nothing"
        opened = self._open.pop()[0]
        assert opened == tag, f"</{tag}> closes <{opened}>"
        if tag in ("dt", "dd", "th", "td", "title"):
            self.handle_data(" ")

    def handle_data(self, data):
        for _, _, text in self._open:
            text.append(data)

    def all(self, tag, **attributes):
        """Attributes and text of every `tag`; a class is one of the words of the attribute."""
        return [
            (found, " ".join("".join(text).split()))
            for name, found, text in self.elements
            if name == tag and all(value in (found.get(key.strip("_")) or "").split() for key, value in attributes.items())
        ]

    def texts(self, tag, **attributes):
        return [text for _, text in self.all(tag, **attributes)]

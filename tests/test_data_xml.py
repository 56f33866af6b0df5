"""XML from elsewhere: entities, encodings, namespaces, and what is refused."""

import time
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitin import InputError
from hitin.datasets import xml_files
from hitin.datasets.xml_files import read_xml, text_of

CHARACTERS = st.characters(min_codepoint=32, exclude_categories=["Cs", "Cn", "Co", "Cc"])


@given(st.text(CHARACTERS))
def test_text_comes_back_with_one_blank_between_words(text: str) -> None:
    data = f"<a><b>{escape(text)}</b></a>".encode()
    assert text_of(read_xml(data, "file")) == " ".join(text.split())


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("<?xml version='1.0' encoding='iso-8859-1'?><a>Café</a>".encode("latin-1"), "Café"),
        ("<?xml version='1.0' encoding='windows-1252'?><a>“Café”</a>".encode("cp1252"), "“Café”"),
        ("<?xml version='1.0' encoding='utf-16'?><a>Café</a>".encode("utf-16"), "Café"),
        (b"<a>Caf&eacute; &amp; &lt;b&gt; &#8364; &euro;&quot;&apos;</a>", "Café & <b> € €\"'"),
        (b"<a>one<b> two</b>\n\tthree<![CDATA[ & four]]></a>", "one two three & four"),
    ],
)
def test_characters_are_read_however_they_are_written(data: bytes, text: str) -> None:
    assert text_of(read_xml(data, "file")) == text


def test_tags_have_no_prefixes() -> None:
    root = read_xml(b'<x:a xmlns:x="urn:any"><x:p class="b">text</x:p></x:a>', "file")
    assert [element.tag for element in root.iter()] == ["a", "p"]
    assert root[0].get("class") == "b"


@pytest.mark.parametrize(
    ("data", "said", "line"),
    [
        (b"", "no element found", 1),
        (b"<a>\n<b></a>", "mismatched tag", 2),
        (b"no xml", "syntax error", 1),
        (b"<a>\n&zzz;</a>", "undefined entity", 2),
        (b"<?xml version='1.0' encoding='klingon'?><a/>", "encoding", 1),
        (b"<?xml version='1.0' encoding='utf-8'?><a>\xff</a>", "not well-formed", 1),
        (b'<!DOCTYPE a [\n<!ENTITY b "bbbb">]><a>&b;</a>', "defines entities", 2),
        (b'<!DOCTYPE a [\n<!ENTITY % b SYSTEM "file:///etc/hosts"> %b;]><a/>', "defines entities", 2),
        (b'<!DOCTYPE a [\n<!ENTITY b SYSTEM "file:///etc/hosts">]><a>&b;</a>', "defines entities", 2),
    ],
)
def test_what_is_no_xml_or_more_than_a_document_is_refused_with_its_line(data: bytes, said: str, line: int) -> None:
    with pytest.raises(InputError) as caught:
        read_xml(data, "some file")
    assert said in caught.value.message
    assert (caught.value.file, caught.value.line) == ("some file", line)


def test_what_a_doctype_points_to_is_not_opened() -> None:
    assert text_of(read_xml(b'<!DOCTYPE a SYSTEM "file:///nowhere.dtd"><a>text</a>', "file")) == "text"


def test_a_bomb_takes_no_time() -> None:
    lines = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 20))
    start = time.process_time()
    with pytest.raises(InputError, match="defines entities"):
        read_xml(f'<!DOCTYPE a [<!ENTITY e0 "x">{lines}]><a>&e19;</a>'.encode(), "file")
    assert time.process_time() - start < 0.5


def test_deep_and_long_documents_are_read_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    deep = 20_000
    assert text_of(read_xml(b"<a>" * deep + b"x" + b"</a>" * deep, "file")) == "x"
    monkeypatch.setattr(xml_files, "LARGEST", 10)
    with pytest.raises(InputError, match="more than"):
        read_xml(b"<a>0123456789</a>", "file")

#!/usr/bin/env python3
"""Writes tests/data/chat_corpus/expected.jsonl: what jinja2 makes of every template with every conversation.

    python3 -m venv venv && venv/bin/pip install jinja2==3.1.6 && venv/bin/python tests/text/make_chat_corpus.py

jinja2 is set up as Hugging Face Transformers does (tools/make_template_data.py). The templates of the corpus are our
own, in the styles of the families they are named after. templates.json has the tokens a template is rendered with
where they are not the defaults. A line has the template, the conversation and its text, or `error: true` where jinja2
refuses.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from make_template_data import environment  # noqa: E402

CORPUS = ROOT / "tests/data/chat_corpus"


def render(template, variables):
    try:
        return {"text": template.render(**variables)}
    except Exception:  # whatever Python raises, the template does not render
        return {"error": True}


def main():
    conversations = json.loads((CORPUS / "conversations.json").read_text())
    tokens = json.loads((CORPUS / "templates.json").read_text())
    env = environment()
    refused = 0
    with (CORPUS / "expected.jsonl").open("w") as out:
        for path in sorted((CORPUS / "templates").glob("*.jinja")):
            template = env.from_string(path.read_text())
            for conversation in conversations:
                variables = {"tools": None, "documents": None, "add_generation_prompt": True}
                variables |= tokens.get(path.stem, tokens["defaults"])
                variables |= {key: value for key, value in conversation.items() if key != "name"}
                line = {"template": path.stem, "conversation": conversation["name"], **render(template, variables)}
                refused += "error" in line
                out.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    print(f"{len(list((CORPUS / 'templates').glob('*.jinja')))} templates, {len(conversations)} conversations, {refused} refused")


if __name__ == "__main__":
    main()

"""Completes the answers of the `openai` client.

    OPENAI_API_KEY=… python whole_answers.py

Without a key a local server acts as the model, with answers of at most 120 characters.
"""

import json
import os
import re
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import openai

import overlock
from overlock.adapters import openai_chat

PLANETS = ["Mercury", "Venus", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"]
DOCUMENT = json.dumps({"planets": [{"name": name, "from_sun": n} for n, name in enumerate(PLANETS, 1)]})


class SmallModel(BaseHTTPRequestHandler):
    """Continues where asked, with at most 120 characters per answer."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked = request["messages"][-1]["content"]
        overlap = re.search(r"\[\[overlap-\w+]]\n(.*)\n\[\[/overlap-", asked, re.DOTALL)
        start = DOCUMENT.find(overlap[1]) if overlap else 0
        message = {"role": "assistant", "content": DOCUMENT[start : start + 120]}
        choice = {"index": 0, "finish_reason": "length", "message": message}
        answer = {"id": "1", "object": "chat.completion", "created": 1, "model": "small"}
        body = json.dumps({**answer, "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


def client() -> openai.OpenAI:
    if "OPENAI_API_KEY" in os.environ:
        return openai.OpenAI()
    server = HTTPServer(("127.0.0.1", 0), SmallModel)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return openai.OpenAI(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none")


def main() -> None:
    completion = overlock.complete(
        openai_chat(client()),
        "The planets of the solar system with their distance from the sun, as JSON.",
        model="gpt-4o-mini",
        max_tokens=500,
    )
    for step in completion.steps:
        result = step["result"]
        print(f"answer {step['iteration']}: {result['seam']}, {result['added_bytes']} bytes more")
    print(completion.whole())


if __name__ == "__main__":
    main()

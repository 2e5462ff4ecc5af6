"""A backend in Python 3.9 or newer, with its standard library: session tokens, verified webhooks, and the decision on each invite.

POST /sign-in?name=ann   stands for the sign-in that your application has
POST /call-token         a token for who is signed in, and nobody else
POST /webhooks           what happened to calls
POST /invites            may this call ring?
"""

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Your users. Whom they may call is your decision, too.
USERS = {
    "ann": {"user_id": "ann", "display_name": "Ann", "role": "customer", "allowed_peer_role": "agent"},
    "ben": {"user_id": "ben", "display_name": "Ben", "role": "agent", "allowed_peer_role": "customer"},
    "eve": {"user_id": "eve", "display_name": "Eve", "role": "customer", "allowed_peer_role": "agent"},
}
# Who may not call anybody for now.
BLOCKED = {"eve"}
# A webhook has at most 64 KiB, a question about an invite less.
MOST_BYTES = 1 << 20
# A signature that is older proves nothing: whoever saw it could send it again.
MOST_AGE_S = 300

# Both belong into your database: they have to outlive the process.
sessions = {}
seen = set()


def verified(body, headers, secret):
    """Whether Ringwire signed these bytes with this secret, as Standard Webhooks has it."""
    try:
        sent_at = int(headers.get("webhook-timestamp", ""))
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (ValueError, binascii.Error):
        return False
    if abs(time.time() - sent_at) > MOST_AGE_S:
        return False
    signed = f"{headers.get('webhook-id', '')}.{sent_at}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    # There are two signatures while a secret is being changed.
    given = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(one.encode(), expected.encode()) for one in given)


def ask_for_token(user):
    """The status and the body of what Ringwire answers. The secret of the product never leaves this process."""
    question = urllib.request.Request(
        os.environ["RINGWIRE_URL"] + "/v1/call/session-token",
        json.dumps({**user, "context_type": "order", "context_id": "1042"}).encode(),
        {
            "Content-Type": "application/json",
            "X-SVC-Product-Key-ID": os.environ["RINGWIRE_KEY_ID"],
            "X-SVC-Product-Secret": os.environ["RINGWIRE_KEY_SECRET"],
        },
    )
    try:
        with urllib.request.urlopen(question, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read()
    except OSError:
        return 503, b'{"success":false,"error":{"code":"RINGWIRE_AWAY"}}'


def decide(invite):
    if invite["caller"]["user_id"] in BLOCKED:
        return {"decision": "refuse", "reason": "blocked"}
    return {"decision": "allow"}


class Backend(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        url = urllib.parse.urlsplit(self.path)
        route = {
            "/sign-in": self.sign_in,
            "/call-token": self.call_token,
            "/webhooks": self.webhook,
            "/invites": self.invite,
        }.get(url.path)
        body = self.read_body()
        if body is None:
            return self.answer(413)
        if route is None:
            return self.answer(404)
        route(body, dict(urllib.parse.parse_qsl(url.query)))

    def sign_in(self, _body, query):
        if query.get("name") not in USERS:
            return self.answer(403)
        session = secrets.token_urlsafe(32)
        sessions[session] = USERS[query["name"]]
        self.answer(204, cookie=f"session={session}; HttpOnly; SameSite=Strict; Path=/")

    def call_token(self, _body, _query):
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get("session")
        user = sessions.get(cookie.value) if cookie else None
        if user is None:
            return self.answer(401)
        self.answer(*ask_for_token(user))

    def webhook(self, body, _query):
        # Verify before you parse.
        if not verified(body, self.headers, os.environ["WEBHOOK_SECRET"]):
            return self.answer(401)
        # The same one may come again: go by its id.
        if self.headers["webhook-id"] not in seen:
            seen.add(self.headers["webhook-id"])
            event = json.loads(body)
            print(event["type"], event["data"]["call_uuid"], flush=True)
        self.answer(204)

    def invite(self, body, _query):
        if not verified(body, self.headers, os.environ["INVITE_SECRET"]):
            return self.answer(401)
        self.answer(200, json.dumps(decide(json.loads(body)["data"])).encode())

    def read_body(self):
        """The body, or None where it is too long or its length is not said."""
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > MOST_BYTES or "Transfer-Encoding" in self.headers:
            self.close_connection = True
            return None
        return self.rfile.read(int(length))

    def answer(self, status, body=b"", cookie=None):
        self.send_response(status)
        if cookie is not None:
            self.send_header("Set-Cookie", cookie)
        if body:
            self.send_header("Content-Type", "application/json")
        self.send_header("Cache-Control", "no-store")
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Its lines would have addresses of people."""


if __name__ == "__main__":
    missing = [
        name
        for name in ("RINGWIRE_URL", "RINGWIRE_KEY_ID", "RINGWIRE_KEY_SECRET", "WEBHOOK_SECRET", "INVITE_SECRET")
        if not os.environ.get(name)
    ]
    if missing:
        sys.exit(f"Set {', '.join(missing)}: see README.md beside this file.")
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3000"))), Backend)
    print(f"The backend listens on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()

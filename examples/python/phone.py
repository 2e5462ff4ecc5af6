"""A phone in the terminal that speaks Ringwire's protocol without the SDK: it calls, answers, ends and comes back.

    RINGWIRE_KEY_ID=… RINGWIRE_KEY_SECRET=… python3 phone.py --user ann --role customer --peer-role agent

Then type: invite ben · accept · reject · cancel · end · quit. It carries no sound: webrtc.* messages are shown alone.
"""

import argparse
import asyncio
import json
import os
import random
import sys
import threading
import urllib.error
import urllib.request
from http.client import HTTPException

from websocket import Closed, connect

# With these the service says: do not come back (docs/generated/close-codes.md).
FINAL = {1002, 1003, 1007, 1008, 4400, 4403, 4409}
# The same again until somebody corrects something (docs/guide/backend-developers.md).
WRONG = {400, 401, 403, 404}
# KEY_ID and SECRET are earlier names of the same.
KEY_ID = os.environ.get("RINGWIRE_KEY_ID") or os.environ.get("KEY_ID")
KEY_SECRET = os.environ.get("RINGWIRE_KEY_SECRET") or os.environ.get("SECRET")
OVER = {"call.ended", "call.rejected", "call.cancelled", "call.missed"}
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0


def say(*words):
    print(*words, flush=True)


class Refused(Exception):
    """The service answered, and there is no token."""

    def __init__(self, error):
        super().__init__(f"no token: {explain(error)}")
        self.status = error.code


def explain(error):
    """Code and message as the service sends them; a proxy may answer something else."""
    try:
        told = json.load(error)["error"]
        return f"{told['code']} ({told['message'].rstrip('.')})"
    except (ValueError, LookupError, TypeError, AttributeError, OSError, HTTPException):
        return str(error)


def ask_for_token(options):
    """What your backend does for a user whom it has authenticated; the secret never leaves it."""
    body = {
        "context_type": "order",
        "context_id": "1042",
        "user_id": options.user,
        "role": options.role,
        "display_name": options.name or options.user,
        "allowed_peer_role": options.peer_role,
    }
    headers = {
        "Content-Type": "application/json",
        "X-SVC-Product-Key-ID": KEY_ID,
        "X-SVC-Product-Secret": KEY_SECRET,
    }
    url = f"{options.url}/v1/call/session-token"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        raise Refused(error) from None
    except urllib.error.URLError as error:
        raise OSError(f"no service answers at {options.url}: {error.reason}") from None


class Phone:
    """One participant, with one call at a time."""

    def __init__(self, options):
        self.options = options
        self.socket = None
        self.call_uuid = None
        self.requests = 0
        # What the service asked for before it closed the socket, in seconds.
        self.asked_pause = 0

    async def send(self, event, data):
        if self.socket is None:
            return say("offline: not sent")
        self.requests += 1
        message = {"event": event, "request_id": f"r{self.requests}", "data": data}
        await self.socket.send(json.dumps(message))

    async def type(self, line):
        """Does what was typed."""
        verb, *words = line.split() or [""]
        if verb == "invite" and words:
            await self.send("call.invite", {"callee_user_id": words[0], "callee_role": self.options.peer_role})
        elif verb in ("accept", "reject", "cancel", "end"):
            if self.call_uuid is None:
                return say("there is no call")
            await self.send(f"call.{verb}", {"call_uuid": self.call_uuid})
        else:
            say("invite USER, accept, reject, cancel, end, quit")

    def heard(self, message):
        """Shows a message, and remembers which call it is about."""
        event, data = message["event"], message.get("data", {})
        if event in ("call.invited", "call.ringing"):
            self.call_uuid = data["call_uuid"]
        elif event in OVER and data.get("call_uuid") == self.call_uuid:
            self.call_uuid = None
        if event == "auth.ok":
            say("online as", data["user_id"])
        elif event == "call.error":
            self.asked_pause = message["error"].get("retry_after_ms", 0) / 1000
            say(event, message["error"]["code"], message["error"]["message"])
        else:
            say(event, data.get("display_name") or data.get("status") or "")

    async def stay_online(self):
        """Connects, and again whenever the connection is lost, with pauses that grow. Returns when it must not: 1."""
        failures = 0
        while True:
            try:
                # A new token each time: the one of before may have run out meanwhile.
                session = await asyncio.to_thread(ask_for_token, self.options)
                socket = await connect(session["ws_url"], ["jwt", session["token"]])
                while True:
                    message = json.loads(await socket.receive())
                    # Only now the service has taken the token.
                    self.socket, failures = socket, 0
                    self.heard(message)
            except Closed as closed:
                why = f"closed with {closed}"
                if closed.code in FINAL:
                    say(f"{why}: not again")
                    return 1
            except Refused as refused:
                why = str(refused)
                if refused.status in WRONG:
                    say(f"{why}: not again")
                    return 1
            except OSError as error:
                why = str(error)
            self.socket = None
            pause = self.asked_pause + min(LONGEST_PAUSE, FIRST_PAUSE * 2**failures) * random.uniform(0.5, 1)
            self.asked_pause = 0
            failures += 1
            say(f"{why}; again in {pause:.1f} s")
            await asyncio.sleep(pause)


def read_lines(loop, lines):
    """Hands on what is typed; a thread, for a terminal cannot be awaited everywhere."""
    for line in sys.stdin:
        loop.call_soon_threadsafe(lines.put_nowait, line.strip())
    loop.call_soon_threadsafe(lines.put_nowait, "quit")


async def main(options):
    phone = Phone(options)
    lines = asyncio.Queue()
    threading.Thread(target=read_lines, args=(asyncio.get_running_loop(), lines), daemon=True).start()
    staying = asyncio.create_task(phone.stay_online())
    while True:
        typing = asyncio.create_task(lines.get())
        await asyncio.wait({staying, typing}, return_when=asyncio.FIRST_COMPLETED)
        if staying.done():
            return staying.result()
        if typing.result() == "quit":
            if phone.socket is not None:
                phone.socket.close()
            return 0
        await phone.type(typing.result())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A phone in the terminal.")
    url = os.environ.get("RINGWIRE_URL") or "http://127.0.0.1:8080"
    parser.add_argument("--url", default=url, help="where the service is (default: RINGWIRE_URL, or %(default)s)")
    parser.add_argument("--user", required=True, help="your user ID")
    parser.add_argument("--role", required=True, help="your role")
    parser.add_argument("--peer-role", required=True, help="the role that you may call")
    parser.add_argument("--name", help="what others see; your user ID if it is left out")
    arguments = parser.parse_args()
    if not (KEY_ID and KEY_SECRET):
        print("Set RINGWIRE_KEY_ID and RINGWIRE_KEY_SECRET: ringwire keys create prints both", file=sys.stderr)
        sys.exit(2)
    code = 0
    try:
        code = asyncio.run(main(arguments))
    except KeyboardInterrupt:
        pass
    # The thread may wait for a line that never comes.
    os._exit(code)

/** The rules of docs/protocol.md that the kit can look at from outside, in a few words each. */
export const ruleTitles = {
  TOK1: 'The token endpoint answers with the first failure, by its code',
  TOK2: 'The session token names the roles that may be called',
  TOK3: 'expires_at is in UTC, and no cache may keep a token',
  TOK6: 'ws_url is a WebSocket URL that ends in /v1/ws',
  ICE1: 'STUN entries have urls only, TURN entries a credential',
  ID1: 'A participant is a role and a user_id; strangers see no call',
  ID3: 'No participant is called "." or ".."',
  HTTP1: 'Refused requests have a status, a code and a message',
  HEALTH1: 'The health endpoints answer in one shape, without credentials',
  HIST1: 'The history is newest first',
  HIST2: 'Records of the history say when a call ended, and why',
  WS1: 'The token comes as subprotocol or as header, never in the URL',
  WS2: 'A bad credential is refused, in the way that its sender can see',
  WS3: 'auth.ok comes first and says who the client is',
  WS4: 'What rings and what was missed follows auth.ok',
  WS5: 'auth.refresh replaces the token of an open session',
  WS6: 'Pings are answered; a message has at most 64 KiB',
  CLOSE: 'Close codes say whether, when and with which token to come back',
  ENV1: 'A message is one JSON object with an event; heartbeats are ignored',
  ENV2: 'call.error has its error at the top level and in data',
  ENV3: 'Unknown events and fields do no harm',
  ENV4: 'Replies carry the request_id, pushes none',
  ENV5: 'Errors have known codes; calls of others are not found',
  INV1: 'An invite names its callee, and is checked',
  INV2: 'The inviter hears call.invited',
  INV3: 'The same invite again makes no second call',
  INV4: 'A callee who is away still rings until the timeout',
  INV6: 'Of two invites that cross, the first one waits to be answered',
  INV7: 'A new invite for something else replaces the one that rings',
  UUID1: 'A call_uuid is one call, in lower case',
  RING1: 'A ring that nobody answers is missed, once and in time',
  RING2: 'call.ringing says who calls, about what, and for how long',
  ORD2: 'What one session hears of a call is in order, and ends with its end',
  ORD3: 'No older version of a call follows a newer one',
  PLACE1: 'The first accept has the call; the other devices stop ringing',
  PLACE2: 'A client that comes back has its place in the call',
  PLACE3: 'A place that is held cannot be taken',
  PLACE5: 'What was not proven to have arrived is sent again, and taken once',
  END1: 'Hanging up never fails',
  END2: 'The end of a call says why and by whom',
  END3: 'A caller that is gone for 20 s ends the ring',
  END4: 'A session that names a call that is over is told its end',
  END6: 'An extended caller that leaves while it rings has hung up',
  REL1: 'webrtc.* only goes between the two places of a live call',
  REL2: 'What the caller sends before the accept waits for it',
  REL3: 'Relays say whom they are from',
  REL4: 'Relayed JSON is passed on as it was written',
  EXT1: 'auth.ok of an extended session names it; seq counts without gaps',
  EXT2: 'Every request with a request_id gets exactly one reply',
  EXT4: 'n counts 1, 2, 3; what took no effect is sent again, unchanged',
  EXT5: 'Extended peers hear that it rings and that media is connected',
  MEDIA1: 'call.media goes to the extended peer',
  HOLD1: 'The peer hears that the call is on hold',
  TAKE1: 'A call goes on at another device of the same user',
  XFER1: 'A call is handed to somebody else, at once or after a consultation',
  PEER1: 'An extended peer hears that the other side is away, and back',
  GROUP1: 'A call to a group rings at all of its members, or at one after another',
  RES1: 'A resume continues exactly where the client was',
  RES2: 'A resume that cannot be exact begins a new session',
} as const

export type RuleId = keyof typeof ruleTitles

/** Each once. */
export function rulesOf(scenarios: readonly { readonly rules: readonly RuleId[] }[]): RuleId[] {
  return [...new Set(scenarios.flatMap(({ rules }) => rules))].sort()
}

/** The scenarios to play: those that check one of these rules (none: any), and whose name has this text. */
export function wanted<S extends { readonly name: string; readonly rules: readonly RuleId[] }>(
  scenarios: readonly S[],
  { only, named }: { readonly only: readonly RuleId[]; readonly named: string },
): readonly S[] {
  const looks = ({ rules }: S) => only.length === 0 || rules.some((rule) => only.includes(rule))
  return scenarios.filter((scenario) => looks(scenario) && scenario.name.includes(named))
}

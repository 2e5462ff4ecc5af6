import { describe, expect, test } from 'bun:test'
import { type ClientEventName, clientEvents } from './client-events.ts'
import { callUuid as call_uuid, rightData } from './envelope.fixture.ts'
import { createMessageParser, type ParsedMessage } from './envelope.ts'
import { relaySender } from './relay-text.ts'

const parse = createMessageParser()
const send = (event: string, data?: unknown, request_id: unknown = 'r1') =>
  parse(JSON.stringify({ event, request_id, data }))

function refused(result: ParsedMessage, code: string, field?: string) {
  expect(result.kind).toBe('error')
  if (result.kind !== 'error') return
  expect({ code: result.error.code as string, field: result.error.field }).toEqual({ code, field })
  expect(result.malformed).toBe(code === 'INVALID_MESSAGE')
}
const accepted = (result: ParsedMessage) => expect(result.kind).toBe('request')

const events = Object.keys(clientEvents) as ClientEventName[]
const offer = (sdp: unknown) => send('webrtc.offer', { call_uuid, sdp })
const candidate = (value: unknown) => send('webrtc.ice_candidate', { call_uuid, candidate: value })
const invite = (extra: object) => send('call.invite', { ...rightData['call.invite'], ...extra })

describe('[ENV1] one JSON object a message', () => {
  test('every event with its data is a request', () => {
    for (const event of events) {
      const data = rightData[event]
      const request = { event, requestId: 'r7', n: undefined, data }
      expect(send(event, data, 'r7')).toEqual({ kind: 'request', request } as never)
    }
  })

  test('request_id and data may be null or absent', () => {
    const text = JSON.stringify({ event: 'call.accept', request_id: null, data: { call_uuid } })
    expect(parse(text)).toMatchObject({ kind: 'request', request: { requestId: undefined } })
    refused(parse('{"event":"call.accept","data":null}'), 'INVALID_PAYLOAD', 'call_uuid')
    refused(parse('{"event":"call.accept"}'), 'INVALID_PAYLOAD', 'call_uuid')
  })

  test('an empty text, a bare ping and the heartbeats of libraries are ignored, and only these', () => {
    const heartbeats = [
      '',
      'ping',
      '\ufeff',
      '\ufeffping',
      '{"type":"ping"}',
      '{"event":"ping"}',
      '\ufeff{"event":"ping"}',
    ]
    const more = [
      '{"type":"ping","event":null}',
      '{"event":"ping","data":5,"request_id":[]}',
      '{"type":"ping","ts":1.5}',
    ]
    for (const text of [...heartbeats, ...more]) expect(parse(text)).toEqual({ kind: 'ignored', n: undefined })
    expect(parse('{"type":"ping","n":4}')).toEqual({ kind: 'ignored', n: 4 })
    accepted(parse(`{"type":"ping","event":"call.end","data":{"call_uuid":"${call_uuid}"}}`))
    for (const text of ['{"type":"pong"}', '{"type":"PING"}', '{"type":["ping"]}']) {
      refused(parse(text), 'INVALID_MESSAGE', 'event')
    }
    refused(parse('{"event":"Ping"}'), 'UNKNOWN_EVENT')
    for (const text of [' ', 'PING', 'ping ', '"ping"', 'pong']) refused(parse(text), 'INVALID_MESSAGE')
  })

  test('a byte order mark before a message is ignored, and only one, and only there', () => {
    const text = `{"event":"call.end","request_id":"r1","data":{"call_uuid":"${call_uuid}"}}`
    expect(parse(`\ufeff${text}`)).toEqual(parse(text))
    refused(parse(`\ufeff\ufeff${text}`), 'INVALID_MESSAGE')
    refused(parse(`${text}\ufeff`), 'INVALID_MESSAGE')
    const relay = JSON.stringify({ event: 'webrtc.offer', data: rightData['webrtc.offer'] })
    const ann = relaySender('ann', 'customer')
    expect(parse(`\ufeff${relay}`, ann)).toEqual(parse(relay, ann))
  })

  test('what is not a JSON object is malformed', () => {
    for (const text of ['{', '[]', '[{}]', 'null', '5', '"a"', 'true', '\0', '{"event":"call.end"}x']) {
      refused(parse(text), 'INVALID_MESSAGE')
    }
  })

  test('[WS6] what is nested deeper than 1,000 levels is malformed, and costs no more than to read it', () => {
    const nested = (levels: number) => `${'[{"a":'.repeat(levels / 2)}0${'}]'.repeat(levels / 2)}`
    // The message itself is a level, and so are its data and the metadata.
    const call = (levels: number) => `{"event":"call.end","data":{"call_uuid":"${call_uuid}","more":${nested(levels)}}}`
    accepted(parse(call(998)))
    for (const levels of [1000, 10_000, 30_000]) refused(parse(call(levels)), 'INVALID_MESSAGE')
    accepted(parse(`{"event":"call.end","data":{"call_uuid":"${call_uuid}","more":[${'{},'.repeat(9_999)}{}]}}`))
  })

  test('[WS6] 63 KB of empty arrays cost what it takes to parse them, and little more', () => {
    const text = `{"event":"call.end","data":{"call_uuid":"${call_uuid}","more":[${'[],'.repeat(21_000)}[]]}}`
    // So many rounds that nothing else runs in one of them, also where the machine is busy.
    const best = (read: (it: string) => unknown) => {
      const rounds = Array.from({ length: 150 }, () => {
        const began = performance.now()
        read(text)
        return performance.now() - began
      })
      return Math.min(...rounds)
    }
    accepted(parse(text))
    // Ten times as much, where their values are walked through. It may be compiled late.
    const isCheap = () => best(parse) < best(JSON.parse) * 4
    expect(Array.from({ length: 20 }).some(isCheap)).toBe(true)
  })

  test('each member has its type, and the error names it', () => {
    for (const event of [undefined, null, 5, {}, []]) {
      refused(parse(JSON.stringify({ event, request_id: 'r1' })), 'INVALID_MESSAGE', 'event')
    }
    for (const data of ['', 5, false, [], [{}]]) refused(send('call.end', data), 'INVALID_MESSAGE', 'data')
    for (const id of [5, {}, [], false]) refused(send('call.end', { call_uuid }, id), 'INVALID_MESSAGE', 'request_id')
  })

  test('request_id is echoed where it is a string', () => {
    for (const id of ['', 'r1', '\u0001', '📞']) {
      expect(send('call.end', 5, id)).toMatchObject({ requestId: id })
      expect(send('call.nothing', {}, id)).toMatchObject({ requestId: id })
      expect(send('call.end', {}, id)).toMatchObject({ requestId: id })
    }
    expect(parse('{"request_id":5}')).toMatchObject({ requestId: undefined })
  })

  test('[REL4] a request_id with NUL or a lone surrogate is none: no store and no other client could read it', () => {
    for (const id of ['\0', 'a\0b', '\ud800', '\udc00\ud800', 'x\udfff']) {
      refused(send('call.end', { call_uuid }, id), 'INVALID_MESSAGE', 'request_id')
      expect(send('call.end', { call_uuid }, id)).toMatchObject({ requestId: undefined })
    }
  })

  test('of a member that is there twice, the last counts', () => {
    const text = `{"event":"call.nothing","event":"call.accept","data":5,"data":{"call_uuid":"x","call_uuid":"${call_uuid}"}}`
    expect(parse(text)).toMatchObject({ kind: 'request', request: { event: 'call.accept', data: { call_uuid } } })
  })

  test('a __proto__ member is a member like any other', () => {
    refused(
      parse(`{"__proto__":{"event":"call.accept","data":{"call_uuid":"${call_uuid}"}}}`),
      'INVALID_MESSAGE',
      'event',
    )
    refused(
      parse(`{"event":"call.accept","data":{"__proto__":{"call_uuid":"${call_uuid}"}}}`),
      'INVALID_PAYLOAD',
      'call_uuid',
    )
    const text = `{"event":"call.accept","data":{"call_uuid":"${call_uuid}","__proto__":{"polluted":true}}}`
    accepted(parse(text))
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  test('the name of a member that every object has is no event', () => {
    for (const event of ['__proto__', 'constructor', 'toString', 'hasOwnProperty'])
      refused(send(event), 'UNKNOWN_EVENT')
  })

  test('nested 10,000 deep is answered, wherever the nesting is', () => {
    const deep = '['.repeat(10_000) + ']'.repeat(10_000)
    const objects = `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`
    for (const nested of [deep, objects]) {
      for (const text of [
        nested,
        `{"event":${nested}}`,
        `{"event":"call.accept","request_id":${nested}}`,
        `{"event":"call.accept","data":${nested}}`,
        `{"event":"call.accept","data":{"call_uuid":${nested}}}`,
        `{"event":"call.invite","data":{"callee_user_id":"a","callee_role":"b","metadata":{"m":${nested}}}}`,
        `{"event":"webrtc.offer","data":{"call_uuid":"${call_uuid}","sdp":${nested}}}`,
      ]) {
        expect(parse(text).kind).toBe('error')
      }
    }
    expect(() => parse('['.repeat(1_000_000))).not.toThrow()
  })

  test('unknown fields that are nested deep can be written again, so that they can be relayed', () => {
    const deep = '['.repeat(990) + ']'.repeat(990)
    const text = `{"event":"webrtc.offer","data":{"call_uuid":"${call_uuid}","sdp":{"type":"offer","sdp":"","x":${deep}}}}`
    const result = parse(text)
    accepted(result)
    if (result.kind === 'request') expect(JSON.stringify(result.request.data)).toContain(deep)
  })
})

describe('[EXT4] the number of a request', () => {
  const numbered = (n: unknown, data: object = { call_uuid }) =>
    parse(JSON.stringify({ event: 'call.end', request_id: 'r1', n, data }))

  test('is read from the top level', () => {
    for (const n of [1, 2, Number.MAX_SAFE_INTEGER])
      expect(numbered(n)).toMatchObject({ kind: 'request', request: { n } })
    expect(numbered(undefined, { call_uuid, n: 5 })).toMatchObject({ kind: 'request', request: { n: undefined } })
  })

  test('what is no whole number of at least 1 is known to be wrong; null is none', () => {
    for (const n of [0, -1, 1.5, '1', 2 ** 53, [1], {}, true, '']) {
      expect(numbered(n)).toMatchObject({ kind: 'request', request: { n: 'invalid' } })
      expect(numbered(n, {})).toMatchObject({ kind: 'error', n: 'invalid' })
    }
    const huge = `{"event":"call.end","n":1e400,"data":{"call_uuid":"${call_uuid}"}}`
    expect(parse(huge)).toMatchObject({ kind: 'request', request: { n: 'invalid' } })
    expect(numbered(null)).toMatchObject({ kind: 'request', request: { n: undefined } })
  })

  test('a request that is refused had one, too', () => {
    expect(numbered(3, {})).toMatchObject({ kind: 'error', n: 3, error: { code: 'INVALID_PAYLOAD' } })
    for (const [text, code] of [
      ['{"event":"call.nothing","n":4}', 'UNKNOWN_EVENT'],
      ['{"event":5,"n":4}', 'INVALID_MESSAGE'],
      ['{"event":"call.end","n":4,"data":5}', 'INVALID_MESSAGE'],
      ['{"event":"call.end","n":4,"request_id":5}', 'INVALID_MESSAGE'],
      [
        JSON.stringify({ event: 'call.invite', n: 4, data: { metadata: { m: 'a'.repeat(1024) } } }),
        'PAYLOAD_TOO_LARGE',
      ],
    ] as const) {
      expect(parse(text)).toMatchObject({ kind: 'error', n: 4, error: { code } })
    }
    expect(parse('{"event":"call.end","n":4')).toMatchObject({ kind: 'error', n: undefined })
  })
})

describe('[REL4] what a relay passes on', () => {
  const relayed = (text: string) => {
    const result = parse(text, ann)
    return result.kind === 'request' ? result.request.passedOn : result.kind === 'error' && result.error.field
  }
  const ann = relaySender('ann', 'customer')
  const passedOn = (open: string) =>
    `{"event":"webrtc.offer","data":${open},"from_user_id":"ann","from_role":"customer"}}`
  const sdp = '"sdp":{"type":"offer","sdp":"v=0"}'
  const offerOf = (more: string) => `{"event":"webrtc.offer","data":{"call_uuid":"${call_uuid}",${sdp}${more}}}`

  test('is what its sender wrote', () => {
    const more = ',"a":1.0,"b":1e400, "c" :12345678901234567890,"d":-0,"\\u0041":"\\u00e9\\/","__proto__":{"x":[ ]}'
    expect(relayed(offerOf(more))).toBe(passedOn(`{"call_uuid":"${call_uuid}",${sdp}${more}`))
  })

  test('has no origin of the sender, and the call in lower case', () => {
    const upper = `{"event":"webrtc.offer","data":{"from_role":"x","call_uuid":"${call_uuid.toUpperCase()}","from_user\\u005fid":{},${sdp}}}`
    expect(relayed(upper)).toBe(passedOn(`{"call_uuid":"${call_uuid}",${sdp}`))
    expect(relayed(offerOf(',"sdp2":{"from_role":1}'))).toContain('"from_role":1')
  })

  test('names no key twice, at any level, and holds no text that cannot be kept', () => {
    for (const more of [',"a":1,"\\u0061":2', ',"a":[{"b":{},"b":{}}]', ',"from_role":1,"from_role":2', `,${sdp}`]) {
      expect(parse(offerOf(more), ann)).toMatchObject({
        kind: 'error',
        n: undefined,
        error: { code: 'INVALID_PAYLOAD' },
      })
      expect(relayed(offerOf(more))).toBe('data')
    }
    for (const more of [',"a":"\\u0000"', ',"\\ud800":1', ',"a":["\ud800"]', ',"a":{"b":"x\\udc00"}']) {
      expect(parse(offerOf(more), ann)).toMatchObject({
        kind: 'error',
        error: { code: 'INVALID_PAYLOAD', field: 'data' },
      })
    }
    const twice = offerOf('').replace('{"event"', '{"data":{},"event"')
    expect(parse(twice, ann)).toMatchObject({ kind: 'error', error: { code: 'INVALID_PAYLOAD', field: 'data' } })
    const media = `{"event":"call.media","data":{"call_uuid":"${call_uuid}","audio":true,"video":true,"screen":true,"audio":false}}`
    expect(parse(media, ann)).toMatchObject({ kind: 'error', error: { code: 'INVALID_PAYLOAD', field: 'data' } })
  })
})

describe('[ENV3] unknown things', () => {
  test('an unknown event has a code of its own and is not malformed', () => {
    for (const event of ['', 'call.ringing', 'auth.ok', 'call.acceptt', 'Call.accept', ' call.accept']) {
      refused(send(event, { call_uuid }), 'UNKNOWN_EVENT')
    }
  })

  test('unknown fields are ignored, and sdp and candidate pass through whole', () => {
    for (const event of events) accepted(send(event, { ...rightData[event], unknown: { any: [1] } }))
    accepted(parse(JSON.stringify({ event: 'call.end', seq: 5, version: 'x', data: { call_uuid } })))
    const whole = {
      candidate: 'candidate:1 1 udp 1 192.0.2.1 9 typ host',
      sdpMid: null,
      usernameFragment: 'x',
      more: [1],
    }
    expect(candidate(whole)).toMatchObject({ kind: 'request', request: { data: { candidate: whole } } } as never)
    const sdp = { type: 'offer', sdp: 'v=0', more: { a: null } }
    expect(offer(sdp)).toMatchObject({ kind: 'request', request: { data: { sdp } } } as never)
  })

  test('a candidate may be null or empty; sdpMid and sdpMLineIndex may be null or absent', () => {
    for (const value of [null, { candidate: '' }, { candidate: '', sdpMid: null, sdpMLineIndex: null }]) {
      accepted(candidate(value))
    }
    refused(send('webrtc.ice_candidate', { call_uuid }), 'INVALID_PAYLOAD', 'candidate')
    refused(candidate({ sdpMid: '0' }), 'INVALID_PAYLOAD', 'candidate.candidate')
    for (const usernameFragment of [null, undefined, '', 'EEtu'])
      accepted(candidate({ candidate: '', usernameFragment }))
    refused(candidate({ candidate: '', usernameFragment: 5 }), 'INVALID_PAYLOAD', 'candidate.usernameFragment')
    for (const index of [-1, 65_536, 0.5, '0']) {
      refused(candidate({ candidate: '', sdpMLineIndex: index }), 'INVALID_PAYLOAD', 'candidate.sdpMLineIndex')
    }
  })

  test('sdp.type matches the event', () => {
    refused(offer({ type: 'answer', sdp: '' }), 'INVALID_PAYLOAD', 'sdp.type')
    refused(send('webrtc.answer', { call_uuid, sdp: { type: 'offer', sdp: '' } }), 'INVALID_PAYLOAD', 'sdp.type')
    for (const type of ['pranswer', 'rollback', '', null, undefined])
      refused(offer({ type, sdp: '' }), 'INVALID_PAYLOAD', 'sdp.type')
  })
})

describe('[WS6] sizes, to the byte', () => {
  const characters = { 1: 'a', 2: 'é', 3: '通', 4: '📞' } as const
  const ofBytes = (bytes: number, width: 1 | 2 | 3 | 4) =>
    characters[width].repeat(Math.floor(bytes / width)) + 'a'.repeat(bytes % width)

  for (const width of [1, 2, 3, 4] as const) {
    const text = (bytes: number) => ofBytes(bytes, width)
    test(`sdp 48 KiB, in characters of ${width} bytes`, () => {
      accepted(offer({ type: 'offer', sdp: text(48 * 1024) }))
      refused(offer({ type: 'offer', sdp: text(48 * 1024 + 1) }), 'PAYLOAD_TOO_LARGE', 'sdp.sdp')
      const answer = { call_uuid, sdp: { type: 'answer', sdp: text(48 * 1024 + 1) } }
      refused(send('webrtc.answer', answer), 'PAYLOAD_TOO_LARGE', 'sdp.sdp')
    })
    test(`candidate 4 KiB, in characters of ${width} bytes`, () => {
      accepted(candidate({ candidate: text(4096) }))
      refused(candidate({ candidate: text(4097) }), 'PAYLOAD_TOO_LARGE', 'candidate.candidate')
    })
    test(`ids 255 bytes, in characters of ${width} bytes`, () => {
      for (const field of ['callee_user_id', 'callee_role', 'context_type', 'context_id']) {
        accepted(invite({ [field]: text(255) }))
        refused(invite({ [field]: text(256) }), 'INVALID_PAYLOAD', field)
      }
    })
    test(`request_id 128 bytes, in characters of ${width} bytes`, () => {
      accepted(send('call.end', { call_uuid }, text(128)))
      refused(send('call.end', { call_uuid }, text(129)), 'INVALID_MESSAGE', 'request_id')
    })
    test(`[INV1] metadata 1 KiB of JSON, in characters of ${width} bytes`, () => {
      accepted(invite({ metadata: { m: text(1024 - '{"m":""}'.length) } }))
      refused(invite({ metadata: { m: text(1025 - '{"m":""}'.length) } }), 'PAYLOAD_TOO_LARGE', 'metadata')
    })
  }

  test('a size is told before a shape', () => {
    refused(offer({ type: 'answer', sdp: 'a'.repeat(48 * 1024 + 1) }), 'PAYLOAD_TOO_LARGE', 'sdp.sdp')
  })
})

describe('[INV1] the payload of call.invite', () => {
  test('[GROUP1] [XFER1] a person or a group is named, and not both', () => {
    const named = [
      ['call.invite', 'callee', {}],
      ['call.transfer', 'to', { call_uuid: '0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55' }],
    ] as const
    for (const [event, who, rest] of named) {
      const [user, group] = [`${who}_user_id`, `${who}_group`]
      const data = { ...rest, [`${who}_role`]: 'agent' }
      accepted(send(event, { ...data, [user]: 'bob' }))
      accepted(send(event, { ...data, [user]: null, [group]: 'support' }))
      refused(send(event, data), 'INVALID_PAYLOAD', user)
      refused(send(event, { ...data, [user]: null, [group]: null }), 'INVALID_PAYLOAD', user)
      refused(send(event, { ...data, [user]: 'bob', [group]: 'support' }), 'INVALID_PAYLOAD', group)
    }
    const neither = send('call.invite', { callee_role: 'agent' })
    expect(neither.kind === 'error' && neither.error.message).toBe(
      'callee_user_id is required, or callee_group in its place',
    )
  })

  test('[XFER1] a transfer names a role and somebody of it, or another call', () => {
    const [call_uuid, other] = ['0b9f7a4e-6a52-4f0e-9d3c-2f1b6c1d7e55', '7d1f2a60-93a4-4d0a-8f6e-1b2c3d4e5f60']
    const transfer = (data: object) => send('call.transfer', { call_uuid, ...data })
    accepted(transfer({ to_call_uuid: other }))
    accepted(transfer({ to_call_uuid: other, to_role: null, to_user_id: null, to_group: null, metadata: null }))
    accepted(transfer({ to_call_uuid: null, to_role: 'agent', to_user_id: 'eva' }))
    refused(transfer({ to_call_uuid: 'x' }), 'INVALID_PAYLOAD', 'to_call_uuid')
    refused(transfer({ to_call_uuid: other, to_role: 'agent' }), 'INVALID_PAYLOAD', 'to_role')
    refused(transfer({ to_call_uuid: other, to_user_id: 'eva' }), 'INVALID_PAYLOAD', 'to_call_uuid')
    refused(transfer({ to_call_uuid: other, to_role: 'agent', to_group: 'sales' }), 'INVALID_PAYLOAD', 'to_call_uuid')
    refused(transfer({ to_user_id: 'eva' }), 'INVALID_PAYLOAD', 'to_role')
    const nobody = transfer({ to_role: 'agent' })
    expect(nobody.kind === 'error' && nobody.error.message).toBe(
      'to_user_id is required, or to_group or to_call_uuid in its place',
    )
  })

  test('callee_role is required', () => {
    refused(send('call.invite', {}), 'INVALID_PAYLOAD', 'callee_role')
    refused(send('call.invite', { callee_user_id: 'bob' }), 'INVALID_PAYLOAD', 'callee_role')
    for (const value of ['', ' ', 5, 'a\0', '\ud800', '.', '..']) {
      refused(invite({ callee_group: value }), 'INVALID_PAYLOAD', 'callee_group')
      refused(invite({ callee_user_id: value }), 'INVALID_PAYLOAD', 'callee_user_id')
      refused(invite({ callee_role: value }), 'INVALID_PAYLOAD', 'callee_role')
    }
  })

  test('the other fields may be null or absent, but not anything', () => {
    const wrong: Record<string, unknown[]> = {
      context_type: [5, {}, 'a\0', '\udc00'],
      context_id: [5, {}, 'a\0', '\udc00'],
      call_uuid: ['', 'x', 5, `${call_uuid} `],
      ring_timeout_ms: [0, -1, 1.5, '5'],
      metadata: ['', 5, [], true],
    }
    for (const [field, values] of Object.entries(wrong)) {
      accepted(invite({ [field]: null }))
      for (const value of values) refused(invite({ [field]: value }), 'INVALID_PAYLOAD', field)
    }
  })

  test('call_type is looked at later: it has a code and a turn of its own', () => {
    for (const value of ['video', 'NOT ALLOWED', 5, null, {}]) accepted(invite({ call_type: value }))
  })
})

describe('messages are for people', () => {
  const cases: [string, ParsedMessage, string][] = [
    ['a missing field', send('call.invite', {}), 'callee_role is required'],
    ['a blank id', invite({ callee_role: ' ' }), 'callee_role must not be blank'],
    ['a wrong type', invite({ callee_role: 5 }), 'callee_role must be a string'],
    ['a wrong type of an optional field', invite({ metadata: 5 }), 'metadata must be an object or null'],
    ['no UUID', send('call.end', { call_uuid: 'x' }), 'call_uuid must be a UUID'],
    ['a small number', invite({ ring_timeout_ms: 0 }), 'ring_timeout_ms must be at least 1'],
    ['a wrong constant', offer({ type: 'answer', sdp: '' }), 'sdp.type must be "offer"'],
    ['a nested field', offer({ type: 'offer' }), 'sdp.sdp is required'],
    ['a choice of shapes', candidate({ candidate: 5 }), 'candidate.candidate must be a string'],
    ['no shape of the choice', candidate(5), 'candidate must be an object or null'],
    ['a size', candidate({ candidate: 'a'.repeat(4097) }), 'candidate.candidate must have at most 4096 bytes'],
    [
      'a request_id',
      send('call.end', {}, 5),
      'request_id must be a string of at most 128 bytes, without NUL or lone surrogates',
    ],
    [
      'a key twice',
      parse(
        '{"event":"call.media","data":{"call_uuid":"' +
          call_uuid +
          '","audio":true,"video":true,"screen":true,"x":1,"x":1}}',
        relaySender('ann', 'customer'),
      ),
      'data must not name a key twice in one object',
    ],
    [
      'a name that no URL path can carry [ID3]',
      invite({ callee_user_id: '..' }),
      'callee_user_id must not be "." or "..", which no URL path can carry',
    ],
    ['data', send('call.end', 5), 'data must be an object'],
    ['an event', parse('{}'), 'event must be a string'],
    ['no envelope', parse('['), 'The message is not a JSON envelope {event, request_id?, data?}.'],
    ['an unknown event', send('call.dance'), 'There is no such event: call.dance.'],
    ['an event that is none at all', send('Bearer eyJhbGciOiJIUzI1NiJ9.e30.x'), 'There is no such event.'],
  ]
  for (const [name, result, message] of cases) {
    test(name, () => expect(result).toMatchObject({ kind: 'error', error: { message } }))
  }
})

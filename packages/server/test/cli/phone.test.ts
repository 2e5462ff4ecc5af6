/** `ringwire phone` as people use it: two of them, on a real service. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { block, readDocument } from '@ringwire/testkit/documents'
import { type Box, createBox, type Running } from './command.ts'
import { startInTerminal, startTyping, type Typist } from './typist.ts'

let box: Box
let service: Running
let typists: Typist[]
beforeEach(async () => {
  box = createBox()
  typists = []
  service = await box.serve()
  await box.run(makeKey.replace('npx ringwire ', ''))
})
afterEach(async () => {
  for (const typist of typists) typist.kill()
  await box.clean()
})

/** The words of the guide; those of the README are the same. */
const guide = 'docs/guide/app-developers.md'
const [makeKey = '', startPhone = ''] = block(guide, 'sh', 'Two phones in two terminals').trimEnd().split('\n')
const ann = startPhone.split(' ').slice(3)
const [, changed = ''] = /The other one is `([^`]+)`/.exec(readDocument(guide)) ?? []
const ben = ['--product', 'shop', ...changed.split(' ')]

function phone(args: string[], start = startTyping, env: Record<string, string> = {}): Typist {
  const typist = start(['phone', '--url', service.url, ...args], { RINGWIRE_DATA_DIR: box.dataDir, ...env })
  typists.push(typist)
  return typist
}

/** The next envelope of this event on the screen, as it came or went. */
async function envelope(typist: Typist, sign: '>' | '<', event: string) {
  const [line] = await typist.sees(new RegExp(`^${sign} \\{"event":"${event.replace('.', '\\.')}".*\\}$`, 'm'))
  return JSON.parse(line.slice(2))
}

test('README and guide start the same phone', () => {
  const [, phone] = block('README.md', 'sh', '**Without a backend**').trimEnd().split('\n')
  expect(startPhone).toStartWith('npx ringwire phone --')
  expect(phone).toBe(startPhone)
})

describe('two phones', () => {
  test('invite, accept, media, connected, end: each envelope is on both screens', async () => {
    const [caller, callee] = [phone(ann), phone(ben)]
    expect((await envelope(caller, '<', 'auth.ok')).data).toMatchObject({ user_id: 'ann', role: 'customer' })
    await envelope(callee, '<', 'auth.ok')

    // The token may only call one role, so the role need not be typed.
    caller.type('invite ben')
    expect(await envelope(caller, '>', 'call.invite')).toMatchObject({
      request_id: '1',
      data: { callee_user_id: 'ben', callee_role: 'agent' },
    })
    const { data: invited } = await envelope(caller, '<', 'call.invited')
    expect(invited).toMatchObject({ status: 'ringing', delivered: true })
    const { call_uuid } = invited
    expect((await envelope(callee, '<', 'call.ringing')).data).toMatchObject({ call_uuid, caller_user_id: 'ann' })

    callee.type('accept')
    expect((await envelope(callee, '>', 'call.accept')).data).toEqual({ call_uuid })
    expect((await envelope(caller, '<', 'call.accepted')).data).toEqual({ call_uuid, status: 'accepted' })

    const sdp = { type: 'offer', sdp: 'v=0\r\n' }
    caller.type(`send webrtc.offer ${JSON.stringify({ call_uuid, sdp })}`)
    expect((await envelope(callee, '<', 'webrtc.offer')).data).toMatchObject({ call_uuid, sdp, from_user_id: 'ann' })

    caller.type('connected')
    await envelope(caller, '>', 'call.connected')
    callee.type('end done')
    expect((await envelope(caller, '<', 'call.ended')).data).toMatchObject({ call_uuid, reason: 'done' })

    for (const typist of [caller, callee]) typist.type('quit')
    const ended = await Promise.all([caller.ended, callee.ended])
    expect(ended.map(({ code }) => code)).toEqual([0, 0])
    // Standard output only has envelopes, and no token; what to type is on standard error.
    for (const { out, err } of ended) {
      for (const line of out.trim().split('\n')) expect(line).toMatch(/^[<>] \{"event":"/)
      expect(out + err).not.toContain('eyJ')
    }
    expect(ended[0].err).toContain('It was answered. connected says that media flows, end hangs up.')
    expect(ended[1].err).toContain('ann (customer) is calling: accept, or reject.')
    const { out } = await box.run('call history --product shop --user ann --role customer --json')
    expect(JSON.parse(out).data).toMatchObject([{ call_uuid, status: 'ended', end_reason: 'done' }])
  })

  test('reject with a reason, and cancel; an error of the service is shown, and changes nothing', async () => {
    const [caller, callee] = [phone(ann), phone(ben)]
    await envelope(callee, '<', 'auth.ok')
    caller.type('invite ben agent video')
    expect((await envelope(callee, '<', 'call.ringing')).data).toMatchObject({ call_type: 'video' })
    callee.type('reject not_now')
    expect((await envelope(caller, '<', 'call.rejected')).data).toMatchObject({ reason: 'not_now' })

    caller.type('invite ben')
    const { call_uuid } = (await envelope(callee, '<', 'call.ringing')).data
    await envelope(caller, '<', 'call.invited')
    // The wrong side; then the right one, by the beginning of the call_uuid.
    callee.type(`send call.cancel {"call_uuid":"${call_uuid}"}`)
    expect((await envelope(callee, '<', 'call.error')).error).toMatchObject({ code: 'CALL_NOT_PARTICIPANT' })
    caller.type(`cancel ${call_uuid.slice(0, 8)}`)
    expect((await envelope(callee, '<', 'call.cancelled')).data).toMatchObject({ call_uuid, status: 'cancelled' })
    caller.type('invite ben boss')
    expect((await envelope(caller, '<', 'call.error')).error).toMatchObject({ code: 'CALL_PEER_ROLE_NOT_ALLOWED' })
  })

  test('a script: wait holds the next lines back; the end of the input leaves, and what was sent takes effect', async () => {
    const [caller, callee] = [phone(ann), phone(ben)]
    for (const line of ['wait call.ringing', 'accept', 'wait call.ended']) callee.type(line)
    callee.endInput()
    // Ben is connected before Ann's script begins, or he would not ring at once.
    await envelope(callee, '<', 'auth.ok')
    for (const line of ['invite ben', 'wait call.accepted', 'end']) caller.type(line)
    caller.endInput()
    expect((await caller.ended).code).toBe(0)
    const { code, out } = await callee.ended
    expect([code, out]).toEqual([0, expect.stringContaining('"call.ended"')])
  })

  test('a script leaves when its requests are answered: the answers are shown, and a refusal ends with 1', async () => {
    const script = async (...lines: string[]) => {
      const typist = phone(ann)
      for (const line of lines) typist.type(line)
      typist.endInput()
      return await typist.ended
    }
    const rings = await script('invite ben')
    expect([rings.code, rings.out]).toEqual([0, expect.stringContaining('"call.invited"')])
    // An accept that takes effect has no answer, and one that is refused has.
    const nowhere = '{"call_uuid":"99999999-9999-4999-8999-999999999999"}'
    for (const [line, refusal] of [
      ['invite zoe customer', 'CALL_PEER_ROLE_NOT_ALLOWED'],
      [`send call.accept ${nowhere}`, 'CALL_NOT_FOUND'],
    ] as const) {
      for (const more of [[], ['quit']]) {
        const { code, out } = await script(line, ...more)
        expect([code, out]).toEqual([1, expect.stringContaining(refusal)])
        expect(out.trim().split('\n')).toHaveLength(3)
      }
    }
  })

  test('a service that does not answer a script holds it for 5 s, and ends it with 1', async () => {
    const caller = phone(ann)
    await envelope(caller, '<', 'auth.ok')
    service.signal('SIGSTOP')
    caller.type('invite ben')
    caller.endInput()
    const since = performance.now()
    const { code, err } = await caller.ended
    // The close of a socket that nobody answers takes 30 s.
    expect(performance.now() - since).toBeLessThan(25_000)
    service.signal('SIGCONT')
    expect([code, err]).toEqual([1, expect.stringContaining('did not answer everything within 5 s')])
  })

  test('a wait that lasts says once what it waits for', async () => {
    const caller = phone(ann, startInTerminal)
    await caller.sees(/"auth\.ok"/)
    caller.type('wait call.connected')
    await caller.sees(/Still waiting for call\.connected\. wait has no limit/)
  })
})

describe('who may connect', () => {
  test('a token as the first line of the input; it is shown nowhere, also not where it is typed', async () => {
    const mint = `token ${ann.join(' ')} --json`
    const [first, second] = [JSON.parse((await box.run(mint)).out).token, JSON.parse((await box.run(mint)).out).token]
    const caller = phone(['--token', '-'])
    caller.type(first)
    expect((await envelope(caller, '<', 'auth.ok')).data.user_id).toBe('ann')
    caller.type(`send auth.refresh {"token":"${second}"}`)
    expect((await envelope(caller, '>', 'auth.refresh')).data).toEqual({ token: '(not shown)' })
    // A base client asks for no new token: it connects with one.
    expect((await envelope(caller, '<', 'call.error')).error.code).toBe('UNKNOWN_EVENT')
    caller.endInput()
    const { code, out, err } = await caller.ended
    // The service refused something.
    expect(code).toBe(1)
    for (const token of [first, second]) expect(out + err).not.toContain(token.split('.')[2])
  })

  test('a bad token: 3; no service: 1; a slip in a script: 2; each with a line that says so', async () => {
    const bad = await phone(['--token', 'a.b.c']).ended
    expect([bad.code, bad.err]).toEqual([3, expect.stringContaining('4401 TOKEN')])
    expect(bad.out).toContain('"AUTH_TOKEN_INVALID"')
    const slip = phone(ann)
    slip.type('acept')
    expect(await slip.ended).toMatchObject({ code: 2, err: expect.stringContaining('Did you mean accept?') })
    const unsaid = await phone([]).ended
    expect([unsaid.code, unsaid.err]).toEqual([2, expect.stringContaining('--token -')])
    expect((await phone(['--token', '-', ...ann]).ended).code).toBe(2)
    expect(await phone(['--url', 'ftp://x', ...ann]).ended).toMatchObject({
      code: 2,
      err: expect.stringContaining('ws://HOST:PORT/v1/ws'),
    })
    const other = await phone(['--product', 'other', ...ann.slice(2)]).ended
    expect([other.code, other.err]).toEqual([1, expect.stringContaining('keys create --product other')])
    service.signal('SIGTERM')
    await service.ended
    const nobody = `There is no connection: no Ringwire service answers at ${service.url.replace('http', 'ws')}/v1/ws.`
    expect(await phone(ann).ended).toMatchObject({ code: 1, err: expect.stringContaining(nobody) })
  })

  test('without --url it goes where RINGWIRE_URL says, as the commands that ask the service do', async () => {
    const start = (url: string) => {
      const env = { RINGWIRE_DATA_DIR: box.dataDir, RINGWIRE_URL: url, RINGWIRE_PORT: '1' }
      const typist = startTyping(['phone', ...ann], env)
      typists.push(typist)
      return typist
    }
    await envelope(start(service.url), '<', 'auth.ok')
    const behind = await start('http://127.0.0.1:1/calls/').ended
    expect(behind).toMatchObject({ code: 1, err: expect.stringContaining('ws://127.0.0.1:1/calls/v1/ws') })
    const wrong = await start('127.0.0.1:8080').ended
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining('RINGWIRE_URL has to be like') })
  })

  test('a service that stops ends a script with 1, and says why', async () => {
    const caller = phone(ann)
    await envelope(caller, '<', 'auth.ok')
    service.signal('SIGTERM')
    expect(await caller.ended).toMatchObject({ code: 1, err: expect.stringContaining('1012 SERVICE_RESTART') })
  })
})

describe('in a terminal', () => {
  test('help, a slip, a call that comes while something is typed, disconnect and connect', async () => {
    const callee = phone(ben, startInTerminal, { NO_COLOR: '1' })
    await callee.sees(/You are ben \(agent\)\. To call: invite USER\./)
    callee.type('help')
    await callee.sees(/accept \[CALL\] +answer the call that rings here/)
    callee.type('acept')
    await callee.sees(/Did you mean accept\?/)
    const caller = phone(ann)
    caller.type('invite ben')
    await callee.sees(/ann \(customer\) is calling: accept, or reject\./)
    callee.type('accept')
    // Before that the answer would be that of another device.
    await envelope(caller, '<', 'call.accepted')
    callee.type('calls')
    await callee.sees(/incoming answered ann \(customer\)/)
    callee.type('disconnect')
    await callee.sees(/Disconnected\./)
    callee.type('connect')
    await callee.sees(/< \{"event":"auth\.ok"/)
    callee.type('end')
    await envelope(caller, '<', 'call.ended')
    callee.endInput()
    expect((await callee.ended).code).toBe(0)
    expect((await callee.ended).out).not.toContain('\u001b[32m')
  })

  test('what comes is coloured, and a name moves no cursor', async () => {
    const callee = phone(ben, startInTerminal)
    await callee.sees(/\[32m<.\[0m \{"event":"auth\.ok"/)
    const caller = phone([...ann, '--name', 'Ann\u009b2J'])
    caller.type('invite ben')
    const [line] = await callee.sees(/\{"event":"call\.ringing".*\}/)
    expect(JSON.parse(line).data.display_name).toBe('Ann\u009b2J')
    expect(line).not.toContain('\u009b')
    callee.type('quit')
    expect((await callee.ended).code).toBe(0)
  })
})

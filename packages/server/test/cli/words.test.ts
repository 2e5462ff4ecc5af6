/** What a person types and reads: short ids, names that do not exist, questions before what cannot be undone. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { acceptedCall, connectPair, invite } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { productKey, Service } from '@ringwire/testkit/service'
import { type Box, createBox } from './command.ts'
import { startInTerminal, startTyping } from './typist.ts'

let service: Service
let box: Box
beforeAll(async () => {
  service = await new Service().start()
}, 120_000)
afterAll(() => service.dispose())
beforeEach(() => {
  box = createBox()
})
afterEach(() => box.clean())

const env = () => ({
  RINGWIRE_DATA_DIR: service.dataDir,
  RINGWIRE_URL: service.url,
  RINGWIRE_KEY_ID: productKey.id,
  RINGWIRE_KEY_SECRET: productKey.secret,
})
const run = (args: string) => startTyping(args.split(' '), env()).ended
const seen = (args: string, more: Record<string, string> = {}) =>
  startInTerminal(args.split(' '), { ...env(), ...more }).ended

test('a product that does not exist fails, with those that do', async () => {
  for (const args of [
    'call list --product nope',
    'call history --product nope --user ann --role customer',
    `call trace ${crypto.randomUUID()} --product nope`,
    'call tail --product nope',
    'webhooks list --product nope',
    'webhooks deliveries we_1234 --product nope',
    'participant disconnect customer ann --product nope',
  ]) {
    const { code, out, err } = await run(args)
    expect([args, code, out]).toEqual([args, 3, ''])
    expect(err).toContain('There is no product nope in ')
    expect(err).toContain('Products with a key: shop. To make one: ringwire keys create --product nope')
  }
  // One that exists and has nothing is not an error.
  expect(await run('webhooks list --product shop')).toMatchObject({ code: 0 })
}, 120_000)

test('what is wrong is said in the words that were typed, with what to type instead', async () => {
  for (const [args, code, words] of [
    ['call list --product shop --user ann', 2, 'Give --user and --role together: a participant has both.'],
    ['call list --product shop --role agent', 2, 'Give --user and --role together: a participant has both.'],
    ['call trace ab --product shop', 3, 'An id may be typed short, with at least 4 characters.'],
    ['webhooks create backend --product shop', 1, 'url must be an absolute URL, as https://backend.example.com/'],
  ] as const) {
    const { code: ended, out, err } = await run(args)
    expect([args, ended, out]).toEqual([args, code, ''])
    expect(err).toContain(words)
    expect(err).not.toContain('RINGWIRE_WEBHOOK_ALLOW')
    expect(err).not.toContain('user_id')
  }
  // A setting opens other addresses, and no other text.
  const inside = await run('webhooks create http://127.0.0.1/x --product shop')
  expect(inside.err).toContain('RINGWIRE_WEBHOOK_ALLOW opens other addresses')
}, 120_000)

test('the first characters of an id are enough, if only one begins with them', async () => {
  const pair = await connectPair(service)
  const uuids = ['aaaa1111-0000-4000-8000-000000000001', 'aaaa1111-0000-4000-8000-000000000002'] as const
  for (const call_uuid of uuids) {
    await invite(pair.caller, pair.calleeId, { call_uuid })
    pair.callee.send('call.reject', { call_uuid })
    await pair.caller.next('call.rejected', ({ data }) => data.call_uuid === call_uuid)
  }
  const live = await acceptedCall(pair)
  for (const typed of [live.slice(0, 8), live.slice(0, 13).toUpperCase(), live]) {
    expect((await run(`call trace ${typed} --product shop --json`)).out).toContain(live)
  }
  const several = await run('call trace aaaa1111 --product shop')
  expect([several.code, several.out]).toEqual([2, ''])
  expect(several.err).toBe(`Several begin with aaaa1111. Type more of one:\n  ${uuids.join('\n  ')}\n`)
  for (const typed of [live.slice(0, 3), 'zzzz', '%', "a'b"]) {
    expect(await run(`call trace ${typed} --product shop`)).toMatchObject({ code: 3, out: '' })
  }
  // One that is over does not stand in the way of an end.
  const ended = await run(`call end ${live.slice(0, 8)} --product shop`)
  expect([ended.code, ended.out]).toEqual([0, `The call ${live} is over: ended, ended_by_server.\n`])

  const made = JSON.parse((await run('webhooks create https://backend.example.com/ --product shop --json')).out)
  const digits = made.id.slice('we_'.length)
  for (const typed of [`we_${digits.slice(0, 6)}`, digits.slice(0, 6)]) {
    expect(await run(`webhooks disable ${typed} --product shop`)).toMatchObject({ err: `${made.id} is disabled.\n` })
  }
  expect(await run(`webhooks disable ${digits.slice(0, 1)} --product shop`)).toMatchObject({ code: 3 })
  expect(await run(`webhooks delete ${digits.slice(0, 8)} --product shop`)).toMatchObject({
    code: 0,
    err: `${made.id} is removed.\n`,
  })
}, 240_000)

test('what cannot be undone is asked for; a script says --yes', async () => {
  const erase = 'participant erase customer ann --product shop'
  const refused = await run(erase)
  expect([refused.code, refused.out]).toEqual([2, ''])
  expect(refused.err).toContain('--yes')
  expect(await run(`${erase} --yes`)).toMatchObject({ code: 0 })

  for (const [answer, code, said] of [
    ['n', 1, 'Nothing was changed.'],
    ['', 1, 'Nothing was changed.'],
    ['yes', 0, 'customer/ann is erased'],
  ] as const) {
    const person = startInTerminal(erase.split(' '), env())
    await person.sees(/It cannot be undone\. Go on\? \[y\/N\]/)
    person.type(answer)
    const { code: ended, out } = await person.ended
    expect([answer, ended, out]).toEqual([answer, code, expect.stringContaining(said)])
  }

  await box.run('keys create --product shop --key-id one')
  const data = { RINGWIRE_DATA_DIR: box.dataDir }
  const made = JSON.parse((await box.run('webhooks create https://backend.example.com/ --product shop --json')).out)
  for (const args of [
    `webhooks delete ${made.id} --product shop`,
    'keys rotate one --grace 0',
    'participant disconnect customer ann --product shop --until 2030-01-01T00:00:00Z',
  ]) {
    const person = startInTerminal(args.split(' '), data)
    await person.sees(/Go on\? \[y\/N\]/)
    person.type('n')
    expect(await person.ended).toMatchObject({ code: 1, out: expect.stringContaining('Nothing was changed.') })
    expect((await startInTerminal(`${args} --yes`.split(' '), data).ended).code).toBe(0)
  }
}, 240_000)

test('[GROUP1] a call to a group that nobody has answered names the group', async () => {
  const pair = await connectPair(service)
  expect((await run(`groups set agent line --product shop --member ${pair.calleeId}`)).code).toBe(0)
  pair.caller.send('call.invite', { callee_role: 'agent', callee_group: 'line' })
  const { call_uuid } = (await pair.callee.next('call.ringing')).data
  const rowOf = async (args: string) => (await run(args)).out.split('\n').find((line) => line.includes(call_uuid))
  const lists = [
    'call list --product shop',
    `call history --product shop --user ${pair.callerId} --role customer`,
  ] as const
  for (const args of lists) expect(await rowOf(args)).toContain(' agent/line (group) ')
  pair.callee.send('call.accept', { call_uuid })
  await pair.caller.next('call.accepted')
  for (const args of lists) expect(await rowOf(args)).toContain(` agent/${pair.calleeId} `)
  pair.caller.send('call.end', { call_uuid })
  await pair.callee.next('call.ended')
}, 120_000)

test('a person reads how long ago, in colour; a program reads instants', async () => {
  const pair = await connectPair(service)
  const callUuid = await acceptedCall(pair)
  const instant = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/
  const { out } = await seen('call list --product shop')
  expect(out).toMatch(/just now|\d+ (s|min) ago/)
  expect(out).not.toMatch(instant)
  const esc = '\u001b['
  expect(out).toContain(esc)
  expect((await seen('call list --product shop --exact')).out).toMatch(instant)
  expect((await seen('call list --product shop --json')).out).toMatch(instant)
  for (const off of [{ NO_COLOR: '1' }, { FORCE_COLOR: '0' }]) {
    expect((await seen('call list --product shop', off)).out).not.toContain(esc)
  }
  const piped = await run('call list --product shop')
  expect(piped.out).toMatch(instant)
  expect(piped.out).not.toContain(esc)
  const forced = await startTyping(['call', 'list', '--product', 'shop'], { ...env(), FORCE_COLOR: '1' }).ended
  expect(forced.out).toContain(esc)
  // What went wrong is red.
  expect((await seen('call list --product nope')).out).toContain(`${esc}31mThere is no product nope`)
  pair.caller.send('call.end', { call_uuid: callUuid })
  await pair.callee.next('call.ended')
}, 240_000)

test('[TRACE1] the invites of a participant that were refused are in the list of its calls', async () => {
  const { caller, callerId, calleeId } = await connectPair(service)
  const call_uuid = crypto.randomUUID()
  caller.send('call.invite', { call_uuid, callee_user_id: 'x', callee_role: 'boss' })
  await caller.next('call.error')
  const callUuid = await invite(caller, calleeId)
  const list = `call list --product shop --user ${callerId} --role customer`
  // A refused invite is written beside the call, within seconds.
  let out = ''
  await until('the list has the refused invite', async () => {
    out = (await run(`${list} --refused`)).out
    return out.includes(call_uuid)
  })
  expect(out).toMatch(new RegExp(`refused +CALL_PEER_ROLE_NOT_ALLOWED +customer/${callerId} +boss/ +${call_uuid}`))
  expect(out.indexOf(callUuid)).toBeWithin(1, out.indexOf(call_uuid))
  const { data, refused } = JSON.parse((await run(`${list} --refused --json`)).out)
  expect([data.length, refused[0].call_uuid]).toEqual([1, call_uuid])
  expect((await run(list)).out).not.toContain(call_uuid)
  expect(await run('call list --product shop --refused')).toMatchObject({
    code: 2,
    err: '--user is required where refused is given.\n',
  })
  caller.send('call.cancel', { call_uuid: callUuid })
}, 240_000)

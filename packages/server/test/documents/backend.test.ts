import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endpoints } from '@ringwire/protocol/endpoints'
import { blocks, projectRoot } from '@ringwire/testkit/documents'
import { invite, someone } from '@ringwire/testkit/flows'
import { until } from '@ringwire/testkit/patience'
import { openReceiver, type Receiver } from '@ringwire/testkit/receiver'
import { productKey, Service } from '@ringwire/testkit/service'
import { threeOf } from '../support/transfer-flows.ts'

/** docs/backend.md: each command is run, in the order of the page. */
const page = blocks('docs/backend.md')
const commands = page.filter(({ language }) => language === 'sh').map(({ text }) => text)
/** The answer that the page shows below a command, by the route of the command. */
const shown = new Map(
  page.flatMap(({ language, text }, index) => {
    const next = page[index + 1]
    return language === 'sh' && next?.language === 'json' ? [[routeOf(text), JSON.parse(next.text) as unknown]] : []
  }) as [string, unknown][],
)
const [
  prepare = '',
  token = '',
  live = '',
  ofAnn = '',
  one = '',
  end = '',
  transfer = '',
  history = '',
  timeline = '',
  participant = '',
  disconnect = '',
  disconnectUntil = '',
  exported = '',
  erase = '',
  hook = '',
  hooks = '',
  oneHook = '',
  changeHook = '',
  testHook = '',
  failed = '',
  retry = '',
  rotate = '',
  removeHook = '',
  putGroup = '',
  oneGroup = '',
  groups = '',
  removeGroup = '',
  groupCommands = '',
  changeProduct = '',
  showProduct = '',
  setProduct = '',
  jwks = '',
  cli = '',
  asking = '',
] = commands

const dir = mkdtempSync(join(tmpdir(), 'ringwire-backend-'))
const service = new Service({ RINGWIRE_WEBHOOK_ALLOW: '127.0.0.1' })
let receiver: Receiver
let call = ''
let sessionToken = ''
let webhook = ''
let delivery = ''
beforeAll(async () => {
  receiver = await openReceiver()
  await service.start()
})
afterAll(async () => {
  await service.dispose()
  await receiver?.close()
  rmSync(dir, { recursive: true, force: true })
})

async function sh(text: string): Promise<string> {
  const ringwire = `ringwire() { node ${join(projectRoot, 'packages/server/bin/ringwire.mjs')} "$@"; }`
  const shell = Bun.spawn(['sh', '-ec', `${ringwire}\n${text}`], {
    cwd: dir,
    env: {
      ...(process.env as Record<string, string>),
      RINGWIRE_URL: service.url,
      RINGWIRE_KEY_ID: productKey.id,
      RINGWIRE_KEY_SECRET: productKey.secret,
      RINGWIRE_DATA_DIR: service.dataDir,
      CALL: call,
      TOKEN: sessionToken,
      WEBHOOK: webhook,
      DELIVERY: delivery,
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([new Response(shell.stdout).text(), new Response(shell.stderr).text()])
  if ((await shell.exited) !== 0) throw new Error(`${text}\n${out}${err}`)
  return out
}
/** Asks the service. The answer has to have the shape that the page shows. */
async function ask(text: string) {
  const answer = JSON.parse(await sh(text))
  const route = routeOf(text)
  if (shown.has(route)) expect([route, differences(shown.get(route), answer)]).toEqual([route, []])
  return answer
}

/** Fields that only one of the two has, and fields whose types differ. A null fits any type. */
function differences(page: unknown, real: unknown, at = ''): string[] {
  if (page === null || real === null) return []
  if (Array.isArray(page) && Array.isArray(real)) {
    return page.length === 0 || real.length === 0 ? [] : differences(page[0], real[0], `${at}[0]`)
  }
  if (typeof page !== 'object' || typeof real !== 'object') {
    return typeof page === typeof real ? [] : [`${at}: ${typeof page}, really ${typeof real}`]
  }
  const [ofPage, ofReal] = [page as Record<string, unknown>, real as Record<string, unknown>]
  const names = new Set([...Object.keys(ofPage), ...Object.keys(ofReal)])
  return [...names].flatMap((name) => {
    if (!(name in ofPage)) return [`${at}.${name} is not on the page`]
    return name in ofReal ? differences(ofPage[name], ofReal[name], `${at}.${name}`) : [`${at}.${name} is only there`]
  })
}

test('the page has these commands, and this file runs all of them', () => {
  expect(commands).toHaveLength(34)
})

/** `POST /v1/server/calls/{}/end`, as curl asks it, and as the registry has it. */
function routeOf(command: string): string {
  const url = /"\$RINGWIRE_URL([^"?]+)/.exec(command)?.[1] ?? ''
  const method = /-X (\w+)/.exec(command)?.[1] ?? (command.includes(' -d ') ? 'POST' : 'GET')
  return `${method} ${url.replaceAll(/\$\w+/g, '{}').replace(/\/(participants|groups)\/\w+\/\w+/, '/$1/{}/{}')}`
}

/** What participants ask themselves. */
const ofParticipants = ['GET /v1/calls/history']

test('[SRV1] [SRV2] [HOOK1] each request that a backend may make is on the page', () => {
  const made = new Set(commands.filter((text) => text.startsWith('curl ')).map(routeOf))
  // A participant that a path cannot name is named in the query, and the answers are the same [ID3].
  const isByQuery = (path: string) => /\/participants(\/disconnect|\/export)?$/.test(path)
  const backends = Object.values(endpoints).filter(
    ({ tag, path }) => (tag === 'server' || tag === 'tokens') && !isByQuery(path),
  )
  const routes = backends.map(({ method, path }) => `${method} ${path.replaceAll(/\{\w+\}/g, '{}')}`)
  expect([...made].sort()).toEqual([...routes, ...ofParticipants].sort())
  // Each with what it answers; two have no body.
  const without = routes.filter((route) => !shown.has(route))
  expect(without).toEqual(['DELETE /v1/server/groups/{}/{}', 'DELETE /v1/server/webhooks/{}'])
})

test('[TOK1] [KEY1] a session token, with which a client asks, and the public keys', async () => {
  // An earlier file has the rights that it had.
  writeFileSync(join(dir, 'ringwire.curl'), '', { mode: 0o644 })
  await sh(prepare)
  expect(statSync(join(dir, 'ringwire.curl')).mode & 0o777).toBe(0o600)
  const { token: issued, ws_url, ice_servers, user } = await ask(token)
  expect([ws_url.startsWith('ws://'), Array.isArray(ice_servers), user.user_id]).toEqual([true, true, 'ann'])
  expect((await service.history(issued)).data).toEqual([])
  // Of a secret nothing is shown, and a service begins with one.
  expect(await ask(jwks)).toEqual({ keys: [] })
})

test('[SRV2] [HIST1] calls: listed, shown, ended, and read by who took part', async () => {
  const agent = someone('agent')
  const ann = await service.connect({ user_id: 'ann', role: 'customer' })
  const callee = await service.connect({ user_id: agent, role: 'agent' })
  call = await invite(ann, agent)
  await callee.next('call.ringing')
  for (const command of [live, ofAnn]) expect((await ask(command)).data).toMatchObject([{ call_uuid: call }])
  expect((await ask(one)).call).toMatchObject({ status: 'ringing', by: { user_id: 'ann' } })
  expect((await ask(end)).call).toMatchObject({ status: 'cancelled', end_reason: 'ended_by_server' })
  sessionToken = await service.token({ user_id: 'ann', role: 'customer' })
  expect((await ask(history)).data).toMatchObject([
    { call_uuid: call, direction: 'outgoing', peer: { user_id: agent } },
  ])
  const { call: shown, entries } = await ask(timeline)
  expect([shown.status, entries[0].what]).toEqual(['cancelled', 'invited'])
  for (const client of [ann, callee]) expect((await client.next('call.cancelled')).data.reason).toBe('ended_by_server')
})

test('[SRV2] [XFER1] a call is transferred', async () => {
  const { ann, first } = await threeOf(service)
  const ended = call
  call = first
  const { call_uuid, new_call_uuid } = await ask(transfer)
  call = ended
  expect(call_uuid).toBe(first)
  const { data } = await ann.next('call.transferring')
  expect(data).toMatchObject({ new_call_uuid, to: { user_id: 'eva', role: 'agent' } })
})

test('[SRV2] a participant: shown, and sent away', async () => {
  expect(await ask(participant)).toMatchObject({ online: true, sessions: [{ extended: false }], live_calls: [] })
  expect((await ask(disconnect)).success).toBe(true)
  expect(await ask(participant)).toMatchObject({ online: false, sessions: [] })
  const token = await service.token({ user_id: 'ben', role: 'customer' })
  expect(await ask(disconnectUntil)).toEqual({ success: true, tokens_from: '2030-01-01T00:00:00.000Z' })
  const history = await fetch(`${service.url}/v1/calls/history`, { headers: { Authorization: `Bearer ${token}` } })
  expect(history.status).toBe(401)
})

test('[HOOK1] a webhook endpoint: made, listed, changed, tried, given a new secret, removed', async () => {
  const { secret, ...made } = await ask(hook.replace('https://backend.example.com/webhooks', receiver.url))
  expect([made.url, made.events, secret.slice(0, 6)]).toEqual([receiver.url, ['call.ended', 'call.missed'], 'whsec_'])
  webhook = made.id
  expect((await ask(hooks)).data).toEqual([made])
  expect(await ask(oneHook)).toEqual(made)
  expect(await ask(changeHook)).toEqual({ ...made, description: 'the book of calls' })
  const deliveries = async (status: string) => (await ask(failed.replace('failed', status))).data
  delivery = (await ask(testHook)).delivery_id
  await until('it is delivered', async () => (await deliveries('delivered'))[0]?.id === delivery)
  expect(await deliveries('failed')).toEqual([])
  expect(await ask(retry)).toEqual({ delivery_id: delivery })
  expect((await receiver.until(2)).map(({ id, type }) => [id, type])).toEqual([
    [delivery, 'webhook.test'],
    [delivery, 'webhook.test'],
  ])
  const rotated = await ask(rotate)
  expect(rotated.secret).not.toBe(secret)
  expect(Date.parse(rotated.old_secret_valid_until)).toBeGreaterThan(Date.now())
  expect(await sh(removeHook)).toBe('')
  expect((await ask(hooks)).data).toEqual([])
})

test('[GROUP1] a group: made, shown, listed, removed, and made again on the command line', async () => {
  const group = await ask(putGroup)
  expect(group).toMatchObject({ role: 'agent', group: 'support', members: ['ben', 'eve'], ring_ms: 60_000 })
  expect(await ask(oneGroup)).toEqual(group)
  expect((await ask(groups)).data).toMatchObject([{ group: 'support', member_count: 2 }])
  expect(await sh(removeGroup)).toBe('')
  expect((await ask(groups)).data).toEqual([])
  expect(await sh(groupCommands)).toMatch(/ben, eve[\s\S]*agent +support +2 +in_turn[\s\S]*ben, eve[\s\S]*removed/)
})

test('[HOOK5] who decides on invites', async () => {
  const url = 'https://backend.example.com/invites'
  const { invite_secret: secret, ...changed } = await ask(changeProduct)
  expect(changed).toMatchObject({ product: 'shop', invite_url: url, invite_failure: 'refuse' })
  expect(await ask(showProduct)).toEqual(changed)
  const out = await sh(setProduct)
  expect(out).toContain(`Questions are signed with ${secret}\n`)
  expect(out.slice(out.indexOf(secret))).toContain(url)
})

test('[SRV2] the same on the command line, beside the service, which hears of it', async () => {
  const begun = Math.floor(Date.now() / 1000)
  await until('the next second has begun', () => Math.floor(Date.now() / 1000) > begun)
  const ann = await service.connect({ user_id: 'ann', role: 'customer' })
  await service.connect({ user_id: 'eve', role: 'customer' })
  const [list = '', trace = '', away = ''] = cli.trim().split('\n')
  expect(await sh(list.replace('ended', 'cancelled'))).toContain(call)
  expect(await sh(list)).not.toContain(call)
  expect(await ask(`${list.replace('ended', 'cancelled')} --json`)).toMatchObject({
    success: true,
    data: [{ call_uuid: call }],
  })
  const shown = await ask(timeline)
  const { success: _, call: __, summary } = shown
  const printed = await sh(trace)
  expect(printed).toMatch(/^Since \S+\nAFTER +WHAT +WHO +DEVICE +DETAIL\n0\.000 s +invited +customer\/ann/)
  expect(printed).toEndWith(`\n${summary}\n`)
  expect(await ask(`${trace} --json`)).toEqual(shown)
  expect(await sh(away)).toContain('before')
  expect((await ann.closed).code).toBe(4403)
})

test('[SRV2] what is kept of a participant: exported, and erased; the command line asks the service for the same', async () => {
  const { calls } = await ask(exported)
  expect(calls.map((one: { call: { call_uuid: string } }) => one.call.call_uuid)).toEqual([call])
  const [show = '', eraseAgain = ''] = asking.trim().split('\n')
  const begun = Math.floor(Date.now() / 1000)
  await until('the next second has begun', () => Math.floor(Date.now() / 1000) > begun)
  const ann = await service.connect({ user_id: 'ann', role: 'customer', device_id: 'phone' })
  expect(await sh(show)).toMatch(/^customer\/ann is online\.\nWHAT +SINCE +OF +WHICH\nsession +\S+Z +phone +\S+\n$/)
  expect(await ask(`${show} --json`)).toEqual(await ask(participant))
  expect(await ask(erase)).toMatchObject({ success: true, calls: 1, devices: 0 })
  expect((await ann.closed).code).toBe(4403)
  expect((await ask(one)).call.caller).toEqual({ user_id: '', role: 'customer', display_name: null })
  expect((await ask(exported)).calls).toEqual([])
  expect(await sh(eraseAgain)).toBe('customer/ann is erased: of 0 calls, 0 devices, 0 timeline entries, 0 webhooks.\n')
  expect((await ask(`${eraseAgain} --json`)).calls).toBe(0)
  expect(await sh(show)).toBe('customer/ann is offline.\n')
})

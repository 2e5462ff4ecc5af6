import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type Call, type CallClient, createCallClient } from '@ringwire/client'
import { transferCapabilities } from '@ringwire/client/transfer'
import { Client } from '@ringwire/testkit/client'
import { block, projectRoot, readDocument, writeApplication } from '@ringwire/testkit/documents'
import { until } from '@ringwire/testkit/patience'
import { freePort } from '@ringwire/testkit/ports'
import { makeTemporaryDirectory, type RunningProcess, startProcess } from '@ringwire/testkit/process'

/* docs/guide/support-line.md: every block of it is run, in the order of the page. */

const guide = 'docs/guide/support-line.md'
const directory = await makeTemporaryDirectory()
const port = await freePort()
const backend = `http://127.0.0.1:${port}`
let service: RunningProcess
let line: RunningProcess
let url = ''
/** What the page puts into the environment, and `CALL`. */
const env: Record<string, string> = {}
const clients: Client[] = []

beforeAll(async () => {
  writeApplication(directory.path, {
    'setup.mjs': block(guide, 'js', '## Set it up'),
    'line.mjs': block(guide, 'js', '## The backend'),
    'hold.ts': block(guide, 'ts', '## Hold, and another device'),
    'transfers.ts': block(guide, 'ts', '## Hand a call over'),
  })
  const [setting = '', command] = block(guide, 'sh', '## Start')
    .trimEnd()
    .split(/ (?=npx)/)
  expect(command).toBe('npx ringwire serve')
  const [name = '', value = ''] = setting.split('=')
  service = startProcess([process.execPath, `${projectRoot}/packages/server/src/main.ts`, 'serve'], {
    ...{ RINGWIRE_PORT: '0', RINGWIRE_DATA_DIR: directory.path, [name]: value },
  })
  ;[, url = ''] = await service.waitFor(/Ringwire listens on (http:\/\/\S+)/)
  const made = await shell(block(guide, 'sh', 'Make a product key'))
  const named = block(guide, 'sh', 'Put its ID and its secret').matchAll(/\b(RINGWIRE_KEY_\w+)=…/g)
  const found = [/Key ID\s+(\S+)/, /Secret\s+(\S+)/].map((pattern) => pattern.exec(made)?.[1] ?? '')
  Object.assign(env, { RINGWIRE_URL: url }, Object.fromEntries([...named].map(([, name], n) => [name, found[n]])))
  expect(Object.keys(env)).toEqual(['RINGWIRE_URL', 'RINGWIRE_KEY_ID', 'RINGWIRE_KEY_SECRET'])
}, 240_000)

afterAll(async () => {
  for (const client of clients) client.close()
  await line?.stop()
  await service?.stop()
  await directory.remove()
}, 240_000)

/** A command of the page, where the backend listens on another port. */
async function shell(script: string): Promise<string> {
  // npx finds the program only in the clone.
  const cwd = script.startsWith('npx') ? projectRoot : directory.path
  const child = Bun.spawn(['sh', '-ec', script.replaceAll('http://127.0.0.1:3000', backend)], {
    ...{ cwd, env: { ...process.env, RINGWIRE_DATA_DIR: directory.path, ...env }, stdin: 'ignore' },
  })
  const text = await new Response(child.stdout).text()
  expect([script, await child.exited]).toEqual([script, 0])
  return text
}

async function startLine(hours: { OPENS: string; CLOSES: string }): Promise<void> {
  await line?.stop()
  expect(block(guide, 'sh', 'Start it where both secrets')).toBe('node line.mjs\n')
  line = startProcess([process.execPath, `${directory.path}/line.mjs`], { ...env, ...hours, PORT: `${port}` })
  await line.waitFor(/The support line is there/)
}
const always = { OPENS: '0', CLOSES: '24' }

async function tokenOf(user: string): Promise<string> {
  const command = block(guide, 'sh', 'gets its token from your backend').replace('user=ann', `user=${user}`)
  return JSON.parse(await shell(command)).token
}

async function enter(user: string): Promise<Client> {
  const client = new Client({ url, token: await tokenOf(user) })
  clients.push(client)
  await client.next('auth.ok')
  return client
}

const queue = async () => JSON.parse(await shell(block(guide, 'sh', '## Nobody answers')))
const invite = JSON.parse(block(guide, 'json', '## The group rings'))

function call(customer: Client): Promise<string> {
  customer.send(invite.event, invite.data, invite.request_id)
  return customer.next('call.invited').then(({ data }) => data.call_uuid)
}

test('[guide] the line is set up in plain HTTP, and in Node', async () => {
  await shell(block(guide, 'sh', '**In plain HTTP**'))
  const group = JSON.parse(await shell(block(guide, 'sh', 'The group. A PUT')))
  const endpoint = JSON.parse(await shell(block(guide, 'sh', 'The endpoint. The answer')))
  const product = JSON.parse(await shell(block(guide, 'sh', 'The address that Ringwire asks. The answer')))
  expect(group).toMatchObject({ role: 'agent', group: 'support', members: ['ben', 'cora', 'eve'], ring_ms: 30_000 })
  expect(endpoint).toMatchObject({ url: `${backend}/webhooks`, secret: expect.stringMatching(/^whsec_/) })
  expect(product).toMatchObject({ invite_url: `${backend}/invites`, invite_failure: 'allow' })

  expect(block(guide, 'sh', 'Run it, and the line')).toBe('node setup.mjs\n')
  const setup = startProcess([process.execPath, `${directory.path}/setup.mjs`], { ...env, BACKEND: backend })
  const [, webhook = '', asked = ''] = await setup.waitFor(/^export WEBHOOK_SECRET=(\S+) INVITE_SECRET=(\S+)$/m)
  expect(await setup.exited).toBe(0)
  // The endpoint that plain HTTP made has a new secret, and no other endpoint was made.
  const { data } = JSON.parse(await shell('curl -sf -K ringwire.curl "$RINGWIRE_URL/v1/server/webhooks"'))
  expect(data.map(({ id }: { id: string }) => id)).toEqual([endpoint.id])
  expect([asked, webhook === endpoint.secret]).toEqual([product.invite_secret, false])
  Object.assign(env, { WEBHOOK_SECRET: webhook, INVITE_SECRET: asked })
  await startLine(always)
}, 240_000)

test('[guide] [TOK2] an agent may call customers and colleagues, and nobody has a token without signing in', async () => {
  const { token } = JSON.parse(await shell(block(guide, 'sh', '**In another language**')))
  for (const each of [token, await tokenOf('cora')]) {
    const { allowed_peer_roles } = JSON.parse(Buffer.from(each.split('.')[1], 'base64url').toString())
    expect(allowed_peer_roles).toEqual(['customer', 'agent'])
  }
  for (const headers of [{}, { cookie: 'user=mallory' }, { cookie: 'user=constructor' }]) {
    expect((await fetch(`${backend}/call-token`, { method: 'POST', headers })).status).toBe(401)
  }
  for (const [method, path] of [
    ['GET', '/queue'],
    ['POST', '/queue/next'],
  ] as const)
    expect((await fetch(`${backend}${path}`, { method, headers: { cookie: 'user=ann' } })).status).toBe(401)
})

test('[guide] [GROUP1] the first agent who accepts has the call, and the trace tells of it', async () => {
  const [ann, ...agents] = await Promise.all(['ann', 'ben', 'cora', 'eve'].map(enter))
  const callUuid = await call(ann!)
  const rung = await Promise.all(agents.map((agent) => agent.next('call.ringing')))
  expect(rung.map(({ data }) => data.callee_group)).toEqual(['support', 'support', 'support'])
  agents[1]!.send('call.accept', { call_uuid: callUuid })
  await ann!.next('call.accepted')
  for (const agent of [agents[0]!, agents[2]!])
    expect((await agent.next('call.cancelled')).data).toMatchObject({ reason: 'answered_elsewhere' })
  const { data: live } = JSON.parse(await shell(block(guide, 'sh', 'for a wallboard')))
  expect(live).toMatchObject([{ call_uuid: callUuid, callee: { user_id: 'cora', group: 'support' } }])
  ann!.send('call.end', { call_uuid: callUuid })
  await agents[1]!.next('call.ended')
  env.CALL = callUuid
  // The service writes such entries of the timeline within seconds, not at once [TRACE1].
  const told = /invite_hook.*result=allow[\s\S]*accepted +agent\/cora/
  const show = block(guide, 'sh', 'This shows what became of one call')
  await until('the trace tells of the hook, too', async () => told.test(await shell(show)))
  expect(await queue()).toEqual([])
}, 240_000)

test('[guide] a customer whom all decline waits, and is for one agent only', async () => {
  const [dan, ...agents] = await Promise.all(['dan', 'ben', 'cora', 'eve'].map(enter))
  const callUuid = await call(dan!)
  for (const agent of agents) {
    await agent.next('call.ringing')
    agent.send('call.reject', { call_uuid: callUuid })
  }
  expect((await dan!.next('call.rejected')).data).toMatchObject({ reason: 'all_declined' })
  await until('Dan waits', async () => (await queue()).length > 0)
  const next = block(guide, 'sh', 'A free agent takes the next customer')
  expect(JSON.parse(await shell(next))).toEqual({ user_id: 'dan' })
  expect(JSON.parse(await shell(next))).toEqual({ user_id: null })
}, 240_000)

test('[guide] [HOLD1] an agent puts a call on hold, and continues it', async () => {
  const { toggleHold } = await import(`${directory.path}/hold.ts`)
  const [ben, ann] = ['ben', 'ann'].map((user) => {
    const asked = { method: 'POST', headers: { cookie: `user=${user}` } }
    return createCallClient({ getToken: () => fetch(`${backend}/call-token`, asked) })
  })
  const rings = new Promise<void>((resolve) => {
    ann!.on('incoming', (call) => void call.accept().then(resolve))
  })
  ben!.connect()
  ann!.connect()
  await until('both are online', () => [ben, ann].every((it) => it!.state.name === 'online'))
  const mine = ben!.call({ userId: 'ann', role: 'customer' })
  await rings
  await until('it is accepted', () => mine.state.name === 'accepted')
  expect([await toggleHold(mine), await toggleHold(mine)]).toEqual([true, false])
  await mine.end()
  for (const it of [ben, ann]) it!.close()
}, 240_000)

/** Somebody with a client of the SDK that answers by itself. */
function answering(user: string, transfersOf: (client: CallClient) => Transfers) {
  const asked = { method: 'POST', headers: { cookie: `user=${user}` } }
  const getToken = () => fetch(`${backend}/call-token`, asked)
  const client = createCallClient({ getToken, can: transferCapabilities })
  const transfers = transfersOf(client)
  client.on('incoming', (call) => void call.accept())
  client.connect()
  const talksTo = async (peer: string): Promise<Call> => {
    const found = () => client.calls.find((call) => call.peer.userId === peer && call.state.name === 'accepted')
    await until(`${user} talks to ${peer}`, found)
    return found() as Call
  }
  return { client, talksTo, ...transfers }
}

interface Transfers {
  atOnce(call: Call, userId: string): Promise<void>
  ask(call: Call, userId: string): Promise<Call>
  connect(call: Call, asked: Call): Promise<void>
}

test('[guide] [XFER1] an agent hands a customer over after asking a colleague, and the colleague at once', async () => {
  const { transfersOf } = await import(`${directory.path}/transfers.ts`)
  const people = ['ann', 'ben', 'cora'].map((user) => answering(user, transfersOf))
  const [ann, ben, cora] = people as [(typeof people)[0], (typeof people)[0], (typeof people)[0]]
  await until('all are online', () => people.every(({ client }) => client.state.name === 'online'))
  ann.client.call({ userId: 'ben', role: 'agent' })
  const first = await ben.talksTo('ann')
  const asked = await ben.ask(first, 'cora')
  await Promise.all([ben.talksTo('cora'), cora.talksTo('ben')])
  await ben.connect(first, asked)
  await ann.talksTo('cora')
  const second = await cora.talksTo('ann')
  await until('Ben is in no call', () => ben.client.calls.length === 0)

  await cora.atOnce(second, 'ben')
  await ben.talksTo('ann')
  const third = await ann.talksTo('ben')
  expect(new Set([first, second, third].map(({ callUuid }) => callUuid)).size).toBe(3)
  await third.end()
  await until('nobody is in a call', () => people.every(({ client }) => client.calls.length === 0))
  expect(await queue()).toEqual([])
  for (const { client } of people) client.close()
}, 240_000)

test('[guide] [HOOK5] outside of opening hours the call is refused, and nobody waits', async () => {
  await startLine({ OPENS: '0', CLOSES: '0' })
  const [ann, ben] = [await enter('ann'), await enter('ben')]
  ann.send(invite.event, invite.data, invite.request_id)
  const { error } = await ann.next('call.error')
  expect(error).toMatchObject(JSON.parse(block(guide, 'json', '## Opening hours')))
  expect(ben.all.map(({ event }) => event)).not.toContain('call.ringing')
  expect(await queue()).toEqual([])
  // An unsigned request is not read.
  for (const path of ['/invites', '/webhooks']) {
    expect((await fetch(backend + path, { method: 'POST', body: '{}' })).status).toBe(401)
  }
}, 240_000)

test('the links of the page are in the other guides', () => {
  expect(readDocument('docs/guide/backend-developers.md')).toContain('](support-line.md)')
  expect(readDocument('README.md')).toContain('](docs/guide/support-line.md)')
})

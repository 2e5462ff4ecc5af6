/** The phone in Python against the real service: it calls a base client and is called by one, and it comes back. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { productKey, Service } from '@ringwire/testkit/service'
import { requireSystem } from '../../scripts/system.mjs'

const file = join(import.meta.dir, '..', 'python', 'phone.py')
const key = { RINGWIRE_KEY_ID: productKey.id, RINGWIRE_KEY_SECRET: productKey.secret }
const service = new Service()
const phones: { stop(): void }[] = []

beforeAll(() => service.start(), 60_000)
afterAll(async () => {
  for (const phone of phones) phone.stop()
  await service.dispose()
})

function command(user: string, role: string, peerRole: string, url?: string): string[] {
  const words = ['--user', user, '--role', role, '--peer-role', peerRole]
  return [requireSystem(['python3']).python3, file, ...(url === undefined ? [] : ['--url', url]), ...words]
}

/** The phone in its terminal. */
function startPhone(user: string, role: string, peerRole: string, environment: Record<string, string> = key) {
  const url = 'RINGWIRE_URL' in environment ? undefined : service.url
  const child = Bun.spawn(command(user, role, peerRole, url), {
    env: { PATH: process.env.PATH ?? '', ...environment },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  phones.push({ stop: () => child.kill() })
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader()
  let said = ''
  return {
    type(line: string) {
      child.stdin.write(`${line}\n`)
      child.stdin.flush()
    },
    /** Reads on until it says that; what comes after it is for the next one. */
    async says(words: string): Promise<void> {
      while (!said.includes(words)) {
        const { value, done } = await reader.read()
        if (done) throw new Error(`it never said ${words}: ${said}`)
        said += value
      }
      said = said.slice(said.indexOf(words) + words.length)
    },
    ended: child.exited,
    /** All that it says from now on, until it ends. */
    async rest(): Promise<string> {
      for (let read = await reader.read(); !read.done; read = await reader.read()) said += read.value
      return said
    },
  }
}

test('Python calls, TypeScript answers, and Python ends the call', async () => {
  const ben = await service.connect({ user_id: 'ben', role: 'agent' })
  const ann = startPhone('ann', 'customer', 'agent')
  await ann.says('online as ann')
  ann.type('invite ben')
  const { call_uuid, display_name } = (await ben.next('call.ringing')).data
  expect(display_name).toBe('ann')
  ben.send('call.accept', { call_uuid })
  await ann.says('call.accepted accepted')
  ann.type('end')
  expect((await ben.next('call.ended')).data).toMatchObject({ call_uuid, status: 'ended' })
  ann.type('invite somebody-offline')
  await ann.says('call.invited')
  ann.type('quit')
  expect(await ann.ended).toBe(0)
  await ben.close()
}, 240_000)

test('TypeScript calls, Python answers; it comes back after the service was killed, and the call goes on', async () => {
  const dan = startPhone('dan', 'agent', 'customer')
  await dan.says('online as dan')
  const cat = await service.connect({ user_id: 'cat' })
  cat.send('call.invite', { callee_user_id: 'dan', callee_role: 'agent' })
  await dan.says('call.ringing cat')
  dan.type('accept')
  const { call_uuid } = (await cat.next('call.accepted')).data

  await service.kill()
  await dan.says('; again in ')
  dan.type('end')
  await dan.says('offline: not sent')
  await service.start()
  await dan.says('online as dan')
  const again = await service.connect({ user_id: 'cat' })
  dan.type('end')
  expect((await again.next('call.ended')).data).toMatchObject({ call_uuid })
  await again.close()
}, 240_000)

test('what the service refuses is shown with its code; a verb without a call is not sent', async () => {
  const eve = startPhone('eve', 'customer', 'agent')
  await eve.says('online as eve')
  eve.type('accept')
  await eve.says('there is no call')
  eve.type(`invite ${'x'.repeat(300)}`)
  await eve.says('call.error INVALID')
}, 240_000)

test('without --url it goes where RINGWIRE_URL says; it names the address where nothing answers', async () => {
  const start = (url: string) => startPhone('gil', 'customer', 'agent', { ...key, RINGWIRE_URL: url })
  const there = start(service.url)
  await there.says('online as gil')
  const away = start('http://127.0.0.1:1')
  await away.says('no service answers at http://127.0.0.1:1: ')
}, 240_000)

test('with a wrong secret it says why, with the code and once, and ends', async () => {
  const phone = startPhone('fay', 'customer', 'agent', { ...key, RINGWIRE_KEY_SECRET: 'wrong' })
  expect(await phone.rest()).toBe(
    'no token: PRODUCT_AUTH_INVALID_SECRET (The product secret is incorrect. ringwire keys rotate makes a new one for the key): not again\n',
  )
  expect(await phone.ended).toBe(1)
})

test('without a key in the environment it says in one line what is missing, and ends with 2', () => {
  const { RINGWIRE_KEY_ID, RINGWIRE_KEY_SECRET } = key
  for (const environment of [{}, { RINGWIRE_KEY_ID }, { RINGWIRE_KEY_SECRET }]) {
    const { exitCode, stdout, stderr } = Bun.spawnSync(command('fay', 'customer', 'agent'), {
      env: { PATH: process.env.PATH ?? '', ...environment },
    })
    expect([exitCode, stdout.toString()]).toEqual([2, ''])
    expect(stderr.toString()).toMatch(/^Set RINGWIRE_KEY_ID and RINGWIRE_KEY_SECRET: .+\n$/)
  }
})

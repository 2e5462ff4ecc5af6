/** The phone in Python as a client under `ringwire conformance`: what the kit says is typed into it. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { problemsOf, runKit, verdictsOf } from '@ringwire/testkit/conformance'
import { productKey, Service } from '@ringwire/testkit/service'
import { requireSystem } from '../../scripts/system.mjs'

const service = new Service()
beforeAll(() => service.start(), 60_000)
afterAll(() => service.dispose())

const file = join(import.meta.dir, '..', 'python', 'phone.py')
const typed: Readonly<Record<string, string>> = {
  answer: 'accept',
  decline: 'reject',
  cancel: 'cancel',
  hang_up: 'end',
  disconnect: 'quit',
}

function startPhone(url: string, user: string, peerRole: string) {
  const words = ['--url', url, '--user', user, '--role', 'customer', '--peer-role', peerRole]
  return Bun.spawn([requireSystem(['python3']).python3, file, ...words], {
    env: {
      PATH: process.env.PATH ?? '',
      RINGWIRE_KEY_ID: productKey.id,
      RINGWIRE_KEY_SECRET: productKey.secret,
    },
    stdin: 'pipe',
    stdout: 'ignore',
    stderr: 'inherit',
  })
}

test('the phone in Python keeps every rule that the kit looks at', async () => {
  let phone: ReturnType<typeof startPhone> | undefined
  let start = () => {}
  let peer = ''
  const type = (line: string) => {
    phone?.stdin.write(`${line}\n`)
    phone?.stdin.flush()
  }
  const { report, code } = await runKit(
    service.url,
    (line) => {
      if (line.type === 'session') {
        const { url, client } = line
        peer = line.peer.user_id
        start = () => {
          phone?.kill()
          phone = startPhone(url, client.user_id, line.peer.role)
        }
      }
      if (line.type !== 'do') return
      // If the service sends it away, it ends.
      if (line.action === 'connect') start()
      else if (line.action === 'call') type(`invite ${peer}`)
      else if (typed[line.action] !== undefined) type(typed[line.action] ?? '')
    },
    ['--patience', '30'],
  )
  phone?.kill()
  expect(problemsOf(report)).toEqual([])
  // It is a base client, and lets the service choose the call_uuid.
  expect(verdictsOf(report, 'not seen')).toEqual(['EXT4', 'REL1', 'RES1', 'RES2', 'UUID1', 'WS5', 'XFER1'])
  expect(code).toBe(0)
}, 400_000)

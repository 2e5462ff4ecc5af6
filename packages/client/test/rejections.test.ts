import { expect, test } from 'bun:test'
import { agent, onlineFake, rings, turn } from '../src/environment.fixture.ts'
import { createMediaState } from '../src/media/media-state.ts'
import { RingwireError } from '../src/ringwire.ts'

/** Runs the lines in a process of their own, as a bot does: its exit code and what it printed. */
async function run(...lines: string[]): Promise<{ code: number; said: string[] }> {
  const from = (file: string) => JSON.stringify(new URL(file, import.meta.url).pathname)
  const imports = [
    `import { agent, onlineFake, rings, turn } from ${from('../src/environment.fixture.ts')}`,
    `import { RingwireError } from ${from('../src/ringwire.ts')}`,
    'const fake = await onlineFake()',
  ]
  const child = Bun.spawn([process.execPath, '-e', [...imports, ...lines].join('\n')], {
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const said = (await new Response(child.stdout).text()).trim().split('\n')
  return { code: await child.exited, said }
}

const call = 'fake.client.call(agent); await turn(); await turn()'

test('a bot outlives a caller who cancels at once', async () => {
  const ended = await run(
    "fake.client.on('incoming', async (call) => { await call.accept() })",
    'fake.socket.says(rings(1))',
    "fake.socket.fails('CALL_INVALID_STATE', { status: 'cancelled' }, 'call.accept')",
    "await turn(); await turn(); console.log('alive'); process.exit(0)",
  )
  expect(ended).toEqual({ code: 0, said: ['alive'] })
})

test('a bug in a listener that nobody listens for surfaces as without the SDK', async () => {
  const bug = "fake.client.on('calls', () => Promise.reject(new TypeError('a bug')))"
  expect((await run(bug, call)).code).toBe(1)
  const heard = await run(bug, "fake.client.on('error', () => {})", call, "console.log('alive')")
  expect(heard).toEqual({ code: 0, said: ['alive'] })
})

test('a listener of error that fails does not hear of itself', async () => {
  const ended = await run(
    "fake.client.on('error', async () => { console.log('heard'); throw new TypeError('again') })",
    "fake.client.on('calls', () => Promise.reject(new RingwireError('TIMEOUT', 'late')))",
    call,
  )
  expect(ended).toEqual({ code: 1, said: ['heard'] })
})

test('the failure itself is reported; anything else is the cause of LISTENER_FAILED, also of a call', async () => {
  const fake = await onlineFake()
  const errors: RingwireError[] = []
  fake.client.on('error', (error) => errors.push(error as RingwireError))
  const bug = new TypeError('a bug')
  const expected = new RingwireError('TIMEOUT', 'late')
  fake.client.on('calls', async () => {
    throw expected
  })
  const call = fake.client.call(agent)
  call.on('state', () => Promise.reject(bug))
  void call.end()
  await turn()
  await turn()
  expect(errors.map(({ code, cause }) => [code, cause])).toEqual([
    ['TIMEOUT', undefined],
    ['TIMEOUT', undefined],
    ['LISTENER_FAILED', bug],
  ])
})

test('an accept that fails is reported by its own code', async () => {
  const fake = await onlineFake()
  const errors: string[] = []
  fake.client.on('error', ({ code }) => errors.push(code))
  fake.client.on('incoming', async (call) => {
    await call.accept()
  })
  fake.socket.says(rings(1))
  fake.socket.fails('CALL_INVALID_STATE', { status: 'cancelled' }, 'call.accept')
  await turn()
  await turn()
  expect(errors).toEqual(['CALL_INVALID_STATE'])
})

test('listeners of media are heard the same way', async () => {
  const shown = createMediaState({} as MediaStream, {} as MediaStream)
  const errors: unknown[] = []
  const bug = new TypeError('a bug')
  shown.on('state', () => Promise.reject(bug))
  shown.on('error', (error) => errors.push(error))
  shown.change({ name: 'connecting' })
  await turn()
  await turn()
  expect(errors).toEqual([bug])
})

import { afterAll, beforeAll, expect } from 'bun:test'
import { makeTemporaryDirectory } from '@ringwire/testkit/process'
import { expectFlow } from '../../../../demo/test/support/flow.ts'
import { DemoService } from '../../../../demo/test/support/service.ts'
import type { SessionToken } from '../../../src/types.ts'
import { type Program, preparePrograms, type Runtime } from './programs.ts'

export const kinds = ['audio', 'video'] as const

/** The real service with its demo, and phones in Node and Bun, for the tests of one file. */
export function withPrograms() {
  const stage = {} as { service: DemoService; programs: Awaited<ReturnType<typeof preparePrograms>> }
  const started: Program[] = []
  let directory: Awaited<ReturnType<typeof makeTemporaryDirectory>>

  beforeAll(async () => {
    directory = await makeTemporaryDirectory()
    const [service, programs] = await Promise.all([new DemoService().start(), preparePrograms(directory)])
    Object.assign(stage, { service, programs })
  }, 240_000)

  afterAll(async () => {
    for (const program of started) program.kill()
    await stage.service?.dispose()
    await directory?.remove()
  })

  /** Somebody new, with a token of the demo's backend: its page then shows them as well. */
  async function phone(runtime: Runtime, role: 'customer' | 'agent'): Promise<Program & { userId: string }> {
    const name = `${role} ${crypto.randomUUID().slice(0, 8)}`
    const body = JSON.stringify({ name, role, device_id: crypto.randomUUID() })
    const headers = { 'Content-Type': 'application/json' }
    const response = await fetch(`${stage.service.url}/demo/api/token`, { method: 'POST', headers, body })
    expect(response.status).toBe(200)
    const program = await stage.programs.start(runtime, (await response.json()) as SessionToken)
    started.push(program)
    await program.ask('online')
    return { ...program, userId: name.replace(' ', '-') }
  }

  return {
    url: () => stage.service.url,
    phone,
    /** A call with media at both, from the first of them to the second. */
    async call(runtimes: readonly [Runtime, Runtime]) {
      const [caller, callee] = await Promise.all([phone(runtimes[0], 'customer'), phone(runtimes[1], 'agent')])
      const both = [caller, callee]
      await caller.ask('dial', callee.userId, 'agent')
      await Promise.all(both.map(({ ask }) => ask('flowing')))
      return { caller, callee, both }
    },
  }
}

/** Sound and picture in windows of half a second, at each. */
export async function expectMedia(phones: readonly Program[]): Promise<void> {
  for (const flow of await Promise.all(phones.map(({ ask }) => ask('flow', 3)))) expectFlow(flow, kinds)
}

/** One restarts ICE, or several at once: each has other credentials afterwards, and a connection that works. */
export async function restart(phones: readonly Program[]): Promise<void> {
  const before = await Promise.all(phones.map(({ ask }) => ask('ufrag')))
  await Promise.all(phones.map(({ ask }) => ask('restart')))
  await Promise.all(phones.map(({ ask }, i) => ask('restarted', before[i] ?? '')))
}

/** One side hangs up: the call is over at both, media is closed, and nothing went wrong meanwhile. */
export async function hangUp(by: Program, both: readonly Program[]): Promise<void> {
  await by.ask('hangUp')
  for (const { ask } of both) {
    const over = await ask('over')
    expect(over).toMatchObject({ state: { name: 'over', status: 'ended', reason: 'hangup' }, tracks: 0, errors: [] })
  }
  for (const { leave } of both) expect(await leave()).toBe(0)
}

import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { block } from '@ringwire/testkit/documents'
import type { makeTemporaryDirectory } from '@ringwire/testkit/process'
import type { SessionToken } from '../../../src/types.ts'
import type { Answers } from '../engine/phone.ts'

export type Runtime = 'Node' | 'Bun'

/** A phone without a browser, in a process of its own. */
export interface Program {
  ask<N extends keyof Answers>(name: N, ...values: Parameters<Answers[N]>): Promise<Awaited<ReturnType<Answers[N]>>>
  /** Closes its client, and resolves with the exit code of the process. */
  leave(): Promise<number>
  kill(): void
}

interface Reply {
  readonly id?: number
  readonly value?: unknown
  readonly error?: string
}

/** Writes what these programs are made of: the phone, bundled, and the engine as docs/client.md has it. */
export async function preparePrograms({ path }: Awaited<ReturnType<typeof makeTemporaryDirectory>>) {
  const phone = join(import.meta.dir, '..', 'engine', 'phone.ts')
  const { outputs } = await Bun.build({ entrypoints: [phone], target: 'node', format: 'esm' })
  await Bun.write(join(path, 'phone.mjs'), await outputs[0]!.text())
  const engine = block('docs/client.md', 'js', '\n### WebRTC outside of a browser\n')
  // The temporary folder has no packages of its own.
  const found = fileURLToPath(import.meta.resolve('@roamhq/wrtc'))
  const text = `${engine.replace("'@roamhq/wrtc'", JSON.stringify(found))}\nexport const sources = wrtc.nonstandard\n`
  await Bun.write(join(path, 'webrtc.mjs'), text)
  return { start: (runtime: Runtime, token: SessionToken) => start(path, runtime, token) }
}

function commandOf(runtime: Runtime): string[] {
  if (runtime === 'Bun') return [process.execPath]
  const node = Bun.which('node')
  if (node === null) throw new Error('there is no node on PATH')
  // Node has a WebSocket from 22 on; 20 has the same one behind an option.
  const major = Number(Bun.spawnSync([node, '--version']).stdout.toString().slice(1).split('.')[0])
  return major >= 22 ? [node] : [node, '--experimental-websocket']
}

async function start(path: string, runtime: Runtime, token: SessionToken): Promise<Program> {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  const ready = Promise.withResolvers<void>()
  let count = 0
  const child = Bun.spawn([...commandOf(runtime), join(path, 'phone.mjs'), join(path, 'webrtc.mjs')], {
    env: { PATH: process.env.PATH ?? '', TOKEN: JSON.stringify(token) },
    stdout: 'inherit',
    stderr: 'inherit',
    // Node does not read what Bun writes by default.
    serialization: 'json',
    ipc({ id, value, error }: Reply) {
      if (id === undefined) return ready.resolve()
      const { resolve, reject } = waiting.get(id) ?? Promise.withResolvers<unknown>()
      waiting.delete(id)
      if (error === undefined) resolve(value)
      else reject(new Error(error))
    },
    onExit(_, code, signal) {
      const error = new Error(`the phone on ${runtime} ended with ${signal ?? code}`)
      ready.reject(error)
      for (const { reject } of waiting.values()) reject(error)
    },
  })
  await ready.promise

  const ask: Program['ask'] = (name, ...values) => {
    const reply = Promise.withResolvers<unknown>()
    waiting.set(++count, reply)
    child.send({ id: count, name, values })
    return reply.promise as ReturnType<Program['ask']> as never
  }
  return {
    ask,
    async leave() {
      // The process ends with the answer, or before it.
      ask('leave').catch(() => {})
      return child.exited
    },
    kill: () => child.kill(),
  }
}

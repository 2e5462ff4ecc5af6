import { expect, test } from 'bun:test'
import { until } from '@ringwire/testkit/patience'
import { watchDescriptors } from '../../src/descriptor-watch.ts'
import { createDescriptors } from '../../src/observability/descriptors.ts'
import type { Logger } from '../../src/observability/logger.ts'

test('[MET2] a port that another process took while it was closed is said once, and opened when it is free', async () => {
  let open = 10
  let attempts = 0
  const answer = () => new Response()
  const bind = (port: number) => Bun.serve({ hostname: '127.0.0.1', port, fetch: answer })
  let server: ReturnType<typeof bind> | undefined = bind(0)
  const port = server.port as number
  const said: string[] = []
  const say = (_fields: unknown, text: string) => void said.push(text)
  const unwatch = watchDescriptors(
    createDescriptors({ limit: 100, count: () => open }),
    {
      pause() {
        server?.stop(true)
        server = undefined
      },
      resume() {
        attempts++
        server ??= bind(port)
      },
      closeIdle() {},
    },
    { warn: say, error: say } as unknown as Logger,
  )
  try {
    open = 99
    await until('the port is closed', () => server === undefined)
    const stranger = bind(port)
    open = 10
    await until('it was tried some times', () => attempts >= 3)
    expect(said.filter((text) => text === 'the port cannot be opened again')).toHaveLength(1)
    expect(said).not.toContain('the port is open again')
    await stranger.stop(true)
    await until('it is open', () => server !== undefined)
    await until('the log says so', () => said.includes('the port is open again'))
  } finally {
    unwatch()
    await server?.stop(true)
  }
}, 60_000)

/* A phone in a process of its own, without a browser: it answers every call, and does what the test asks of it. argv: the file
   with the WebRTC engine. */
import { createCallClient } from '../../../src/client.ts'
import { type CallMedia, createCallMedia } from '../../../src/media/call-media.ts'
import type { MediaEnvironment } from '../../../src/media/types.ts'
import type { Call, SessionToken } from '../../../src/types.ts'
import { flowing, measureFlow, totals, until } from '../page/flow.ts'
import { createSources, type Engine } from './sources.ts'

const { environment, sources } = (await import(process.argv[2] ?? '')) as {
  environment: MediaEnvironment
  sources: Engine
}
const { stream, stop } = createSources(sources, environment)
const token = JSON.parse(process.env.TOKEN ?? '') as SessionToken
const client = createCallClient({ getToken: async () => token })
const errors: string[] = []
let call: Call | undefined
let media: CallMedia | undefined

function take(taken: Call): void {
  call = taken
  media = createCallMedia(taken, { environment, media: stream })
  media.on('error', (error) => errors.push(`${error.message} (${String(error.cause)})`))
  media.start().catch((error) => errors.push(String(error)))
}

const theirs = () => {
  if (!media) throw new Error('There is no call yet.')
  return media
}
const ufrag = () => /a=ice-ufrag:(\S+)/.exec(media?.connection?.localDescription?.sdp ?? '')?.[1]

/** What the test may ask. Each answer can be written as JSON. */
const answers = {
  online: () => until(() => client.state.name === 'online'),
  dial: (userId: string, role: string) => take(client.call({ userId, role, callType: 'video' })),
  flowing: async () => {
    await until(() => media !== undefined)
    await flowing(theirs())
  },
  flow: (windows: number) => measureFlow(theirs(), windows),
  totals: () => totals(theirs()),
  restart: () => theirs().restart(),
  ufrag,
  /** The connection has other ICE credentials than these, and works. */
  restarted: (before: string) =>
    until(() => {
      const { connectionState, signalingState } = theirs().connection ?? {}
      return ufrag() !== before && connectionState === 'connected' && signalingState === 'stable'
    }),
  securityCode: async () => {
    await until(() => theirs().securityCode !== undefined)
    return theirs().securityCode
  },
  hangUp: () => call?.end(),
  over: async () => {
    await until(() => call?.state.name === 'over' && theirs().state.name === 'closed')
    return { state: call?.state, tracks: theirs().state.remote.getTracks().length, errors }
  },
  leave: () => {
    client.close()
    stop()
  },
}
export type Answers = typeof answers

client.on('error', (error) => errors.push(error.message))
client.on('incoming', (incoming) => {
  take(incoming)
  void incoming.accept()
})
client.connect()

interface Question {
  readonly id: number
  readonly name: keyof Answers
  readonly values: readonly unknown[]
}

process.on('message', async ({ id, name, values }: Question) => {
  try {
    const run = answers[name] as (...values: readonly unknown[]) => unknown
    process.send?.({ id, value: (await run(...values)) ?? null })
  } catch (error) {
    process.send?.({ id, error: String(error) })
  }
  // The engine crashes a process that ends by itself after a track was stopped.
  if (name === 'leave') process.exit(0)
})
process.on('disconnect', () => process.exit(1))
process.send?.({ ready: true })

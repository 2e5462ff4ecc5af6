import { expect, test } from 'bun:test'
import { openReady } from '../../src/ports/sessions.fixture.ts'
import { outcomeOf, sendAll, useSessionNodes } from './session-nodes.ts'

const { start } = await useSessionNodes()

for (const isThere of [true, false])
  test(`[PLACE4] a holder of whom no answer comes is neither there nor gone, until one comes: ${isThere}`, async () => {
    const { started, client } = await start(2)
    client.disconnect()
    const [one, two] = started as [(typeof started)[0], (typeof started)[0]]
    const seen = await openReady(one.sessions)
    seen.socket.probe = async () => isThere
    const sink = await two.sessions.sinkOf(seen.id)
    // Its node says that it lives, and what it answers does not leave it.
    const lost = new Promise<never>(() => {})
    one.onScript = (name, _args, send) => (name === 'post' ? lost : send())
    expect(await outcomeOf(async () => sink?.probe())).toBe('unavailable')
    one.onScript = sendAll
    expect(await outcomeOf(async () => sink?.probe())).toBe(isThere)
  }, 60_000)

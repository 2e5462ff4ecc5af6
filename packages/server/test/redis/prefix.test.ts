import { expect, test } from 'bun:test'
import { Redis } from 'ioredis'
import { participantHash } from '../../src/ports/session-id.ts'
import { openReady } from '../../src/ports/sessions.fixture.ts'
import { indexKey } from '../../src/stores/redis/keys.ts'
import { useSessionNodes } from './session-nodes.ts'

const { nodes, server } = await useSessionNodes()

test('[REDIS1] a prefix may look like the keys behind it: the sessions of a participant are found, and leave nothing', async () => {
  const prefix = 'shop:o:live:'
  const url = await server.database()
  const [one, two] = [await nodes.start(url, undefined, prefix), await nodes.start(url, undefined, prefix)]
  const client = new Redis(url)
  const { id, identity, socket } = await openReady(one.sessions)
  await one.settled()
  const index = prefix + indexKey(participantHash(identity.participant))
  expect(await client.zrange(index, '0', '-1')).toEqual([id])
  expect((await two.sessions.seen(identity.participant)).map(({ sessionId }) => sessionId)).toEqual([id])
  await one.sessions.detach(id, socket, true, 0)
  await one.settled()
  expect(await client.zrange(index, '0', '-1')).toEqual([])
  client.disconnect()
})

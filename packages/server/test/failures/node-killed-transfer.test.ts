import { expect, test } from 'bun:test'
import { soon, until } from '@ringwire/testkit/patience'
import { ask } from '../scenarios/backend/calls.ts'
import { about } from '../support/extended-flows.ts'
import { namesOf, newCall, threeOf, toEva, transferred } from '../support/transfer-flows.ts'
import { toldOf, worldWithGate } from './world.ts'

const { world, gate } = worldWithGate()

test('[XFER1] [EXT3] a node is killed between the commit of a transfer and the news of it, and so at its answer: the other one tells', async () => {
  const { one, two, postgres, databaseUrl } = world()
  // Ben, who asks, is on the node that dies. In the second, Eva, who answers, is there.
  const asking = await threeOf(two, { at: [two, one, two] })
  const answering = await threeOf(two, { at: [two, two, one] })
  const answered = await transferred(answering)
  const rows = async (where: string) =>
    postgres.query(`SELECT call_uuid, status FROM calls WHERE ${where}`, databaseUrl)
  gate().stall()
  asking.ben.send('call.transfer', toEva(asking))
  answering.eva.send('call.accept', { call_uuid: answered })
  const begun = () => rows(`callee_user_id = '${asking.ids.eva}'`)
  await until('both are committed', async () => {
    const [first] = await rows(`call_uuid = '${answering.first}'`)
    return (await begun()).length === 1 && first?.status === 'ended'
  })
  expect([asking.eva.pushes, namesOf(answering.ben, answering.first).length]).toEqual([[], 1])
  const next = String((await begun())[0]?.call_uuid)
  await one.kill()
  gate().cut()
  const killedAt = performance.now()
  await Promise.all([
    asking.eva.next('call.ringing', about(next)),
    asking.ann.next('call.transferring', newCall(next)),
    answering.ann.next('call.ended', about(answering.first)),
    answering.ben.next('call.ended', about(answering.first)),
  ])
  expect(performance.now() - killedAt).toBeLessThan(soon(8_000))
  // Whatever node tells it: the accept of the new call comes before the end of the first one, and each once. Eva's node died, so
  // she is away; when Ann reads that does not matter.
  const told = namesOf(answering.ann, answering.first, answered).filter(([event]) => event !== 'call.peer_away')
  expect(told).toEqual([
    ['call.accepted', answering.first],
    ['call.transferring', answering.first],
    ['call.accepted', answered],
    ['call.ended', answering.first],
  ])
  // The transfer that was begun goes on, and so does the call that was answered.
  await asking.eva.request('call.accept', { call_uuid: next })
  await asking.ann.next('call.ended', about(asking.first))
  answering.eva.url = two.url
  await answering.eva.die()
  const { data } = await answering.eva.connect()
  expect(data).toMatchObject({ recovered: true, active_calls: [{ call_uuid: answered, holds_place: true }] })
  asking.ben.url = two.url
  await asking.ben.die()
  await asking.ben.connect()
  const over = await asking.ben.next('call.ended', about(asking.first))
  expect(over.data.reason).toBe('transferred')
  for (const [client, event, call] of [
    [asking.eva, 'call.ringing', next],
    [asking.ann, 'call.transferring', asking.first],
    [asking.ann, 'call.ended', asking.first],
    [asking.ben, 'call.ended', asking.first],
    [answering.ben, 'call.ended', answering.first],
  ] as const)
    expect([event, toldOf(client, event, call)]).toEqual([event, 1])
  const { body } = await ask(two, 'GET', `calls/${next}`)
  expect(body.call).toMatchObject({ status: 'accepted', transferred_from: asking.first })
  for (const { ann, ben, eva } of [asking, answering]) for (const client of [ann, ben, eva]) client.stop()
}, 240_000)

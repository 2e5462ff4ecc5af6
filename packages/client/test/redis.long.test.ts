import { afterEach, expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { becomesReady, becomesUnready, type World, worldFor } from '../../server/test/failures/world.ts'
import { online, person, stateOf, talk } from './support/people.ts'
import { createStage } from './support/stage.ts'

/* The SDK on two nodes whose Redis goes away: a real one, which stands still or is killed. */

const world = worldFor({ redisArgs: ['--appendonly', 'yes', '--appendfsync', 'always'] })
const stage = createStage()

interface Outage {
  begin(redis: World['redis']): unknown
  end(redis: World['redis']): unknown
}

const outages: Record<string, Outage> = {
  'stands still': { begin: ({ pid }) => process.kill(pid, 'SIGSTOP'), end: ({ pid }) => process.kill(pid, 'SIGCONT') },
  'is killed and started again': { begin: (redis) => redis.kill(), end: (redis) => redis.restart() },
}

let mend: (() => unknown) | undefined
// A test that fails leaves Redis as the next one needs it.
afterEach(async () => {
  await mend?.()
  mend = undefined
})

for (const [name, outage] of Object.entries(outages)) {
  test(`[END1] Redis ${name}: who hung up meanwhile ended the call, and the other side is told how and by whom`, async () => {
    const { one, two, redis } = world()
    const people = [0, 1].map((nth) => {
      const caller = person(one, someone(`caller-${nth}`), 'customer')
      const callee = person(two, someone(`callee-${nth}`), 'agent')
      stage.keep(caller, callee)
      return { caller, callee }
    })
    await Promise.all(people.flatMap(({ caller, callee }) => [online(caller), online(callee)]))
    const calls = await Promise.all(people.map(({ caller, callee }) => talk(caller, callee)))
    await outage.begin(redis)
    mend = () => outage.end(redis)
    await becomesUnready('redis', one, two)

    const [first, second] = calls as [(typeof calls)[0], (typeof calls)[0]]
    const asked = [first.out.end('battery'), second.in.end('done')]
    expect(first.out.state).toMatchObject({ name: 'over', status: 'ended', reason: 'battery' })
    expect(second.in.state).toMatchObject({ name: 'over', status: 'ended', reason: 'done' })
    await mend()
    mend = undefined
    await becomesReady(one, two)
    await Promise.allSettled(asked)

    const byCaller = { userId: people[0]?.caller.userId, role: 'customer' }
    const byCallee = { userId: people[1]?.callee.userId, role: 'agent' }
    expect(await stateOf(first.in, 'over')).toMatchObject({ status: 'ended', reason: 'battery', by: byCaller })
    expect(await stateOf(second.out, 'over')).toMatchObject({ status: 'ended', reason: 'done', by: byCallee })
    const { data } = await two.history(await two.token({ user_id: byCaller.userId ?? '', role: 'customer' }))
    expect(data).toMatchObject([{ call_uuid: first.out.callUuid, status: 'ended', end_reason: 'battery' }])
  }, 240_000)
}

import { describe, expect, test } from 'bun:test'
import type { Client, Received } from '@ringwire/testkit/client'
import { candidate, someone } from '@ringwire/testkit/flows'
import { isLong } from '@ringwire/testkit/long'
import type { Service } from '@ringwire/testkit/service'
import { answer, offer, quiet, received } from '../../support/sessions.ts'
import { type Start, serviceFor } from './composition.ts'

const seeds = isLong ? 40 : 24
const steps = 120

/** Everything at once and in any order: what may never be seen is not seen, and in the end both histories agree. */
export function registerMixed(name: string, start: Start): void {
  describe(`anything in any order, ${name}`, () => {
    const service = serviceFor(start)
    test(`[END1] [ORD2] [INV6] ${seeds} × ${steps} random requests, losses and returns of two people`, async () => {
      const judge = async (story: Story, seed: number) => {
        // What a client asked for before it died may have taken effect after everybody hung up: by now it has.
        await hangUpAll(service(), story)
        try {
          for (const { client, person } of story.everyone) checkHeard(received(client), story, person)
          await checkHistories(service(), story)
        } catch (error) {
          throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : error}`, { cause: error })
        }
      }
      const stories: Story[] = []
      // Several stories at a time, so that their transitions are committed together.
      while (stories.length < seeds) {
        const seed = stories.length + 1
        stories.push(...(await Promise.all(Array.from({ length: 6 }, (_, n) => playStory(service(), seed + n)))))
      }
      for (const [index, story] of stories.entries()) await judge(story, index + 1)
    })
  })
}

interface Person {
  readonly userId: string
  readonly role: string
  /** Sessions that are open now. */
  readonly open: Client[]
}
interface Story {
  readonly people: readonly [Person, Person]
  /** Every client that there ever was. */
  readonly everyone: { readonly client: Client; readonly person: Person }[]
  readonly uuids: string[]
  /** How often a client closed its socket: the next holder of its place has a new offer made [PLACE5]. */
  closes: number
}

/** The same numbers for the same seed (mulberry32). */
function createRandom(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % below
  }
}

async function connect(service: Service, story: Story, person: Person): Promise<void> {
  const client = await service.connect({ user_id: person.userId, role: person.role })
  person.open.push(client)
  story.everyone.push({ client, person })
}

const verbs = ['accept', 'accept', 'reject', 'cancel', 'end', 'connected', 'connected'] as const

async function playStory(service: Service, seed: number): Promise<Story> {
  const random = createRandom(seed)
  const people: Story['people'] = [
    { userId: someone('ann'), role: 'customer', open: [] },
    { userId: someone('ben'), role: 'agent', open: [] },
  ]
  const story: Story = { people, everyone: [], uuids: [crypto.randomUUID()], closes: 0 }
  for (const person of [...people, ...people]) await connect(service, story, person)
  for (let step = 0; step < steps; step++) {
    const person = people[random(2) as 0 | 1]
    const client = person.open[random(person.open.length)] as Client
    const callUuid = story.uuids[Math.max(0, story.uuids.length - 1 - random(3))] as string
    await act(service, story, { person, client, callUuid }, random)
    if (random(12) === 0) await quiet(...people.flatMap(({ open }) => open))
  }
  await hangUpAll(service, story)
  return story
}

/**
 * Everybody hangs up every call that is not over, until none is left: what a client sent before it died takes effect when
 * its turn comes, and a call may be known under another call_uuid than the one in the invite [UUID1].
 */
async function hangUpAll(service: Service, { people }: Story): Promise<void> {
  const open = people.flatMap((person) => person.open)
  for (;;) {
    await quiet(...open)
    const [{ userId, role }] = people
    const { data } = await service.history(await service.token({ user_id: userId, role }), '?limit=100')
    const live: { call_uuid: string }[] = data.filter(({ ended_at: at }: { ended_at: string | null }) => at === null)
    if (live.length === 0) return
    for (const { call_uuid } of live) for (const client of open) client.send('call.end', { call_uuid })
  }
}

async function act(
  service: Service,
  story: Story,
  { person, client, callUuid }: { person: Person; client: Client; callUuid: string },
  random: (below: number) => number,
): Promise<void> {
  const dice = random(20)
  if (dice < 5) {
    const other = story.people[0] === person ? story.people[1] : story.people[0]
    // Half of the invites repeat a call_uuid that is known already.
    const uuid = random(2) === 0 ? callUuid : crypto.randomUUID()
    if (uuid !== callUuid) story.uuids.push(uuid)
    client.send('call.invite', { callee_user_id: other.userId, callee_role: other.role, call_uuid: uuid })
  } else if (dice < 13) {
    const verb = verbs[random(verbs.length)]
    client.send(`call.${verb}`, {
      call_uuid: callUuid,
      ...(random(6) === 0 && verb === 'reject' ? { reason: 'busy' } : {}),
    })
  } else if (dice < 18) {
    const [event, data] = (
      [
        ['webrtc.offer', offer(callUuid)],
        ['webrtc.answer', answer(callUuid)],
        ['webrtc.ice_candidate', candidate(callUuid, random(1000))],
      ] as const
    )[random(3)] as readonly [string, object]
    client.send(event, data)
  } else {
    person.open.splice(person.open.indexOf(client), 1)
    const dies = random(2) === 0
    if (!dies) story.closes++
    await (dies ? client.die() : client.close())
    await connect(service, story, person)
  }
}

const refusals = ['CALL_NOT_FOUND', 'CALL_NOT_PARTICIPANT', 'CALL_INVALID_STATE', 'CALL_ALREADY_ANSWERED', 'CALL_GLARE']

/** What one client heard, in order. */
function checkHeard(heard: readonly Received[], story: Story, person: Person): void {
  const over = new Set<string>()
  const rang = new Set<string>()
  const accepted = new Map<string, number>()
  for (const { event, data, error, request_id: requestId } of heard.slice(1)) {
    if (event === 'call.error') {
      expect(refusals).toContain(error.code)
      continue
    }
    if (event === 'call.invited') continue
    expect(requestId).toBeUndefined()
    const callUuid: string = data.call_uuid
    expect([event, over.has(callUuid)]).toEqual([event, false])
    if (event === 'call.ringing') {
      expect(rang.has(callUuid)).toBe(false)
      expect(data.caller_role).not.toBe(person.role)
      rang.add(callUuid)
    } else if (event === 'call.accepted') {
      const times = (accepted.get(callUuid) ?? 0) + 1
      expect(times).toBeLessThanOrEqual(1 + story.closes)
      expect(rang.has(callUuid)).toBe(false)
      accepted.set(callUuid, times)
    } else if (event.startsWith('webrtc.')) {
      expect(story.people.find(({ userId }) => userId === data.from_user_id)?.role).toBe(data.from_role)
      expect(data.from_role).not.toBe(person.role)
    } else {
      expect(['call.rejected', 'call.cancelled', 'call.ended', 'call.missed']).toContain(event)
      if (data.ended_at !== null) over.add(callUuid)
    }
  }
}

/** Both read the same, every call is over, and every final notice said what the history says. */
async function checkHistories(service: Service, story: Story): Promise<void> {
  const [ours, theirs] = await Promise.all(
    story.people.map(async ({ userId, role }) => {
      const { data } = await service.history(await service.token({ user_id: userId, role }), '?limit=100')
      return new Map<string, { status: string; end_reason: string; ended_at: string }>(
        data.map((record: { call_uuid: string }) => [record.call_uuid, record]),
      )
    }),
  )
  expect([...(ours?.keys() ?? [])]).toEqual([...(theirs?.keys() ?? [])])
  for (const [callUuid, record] of ours ?? []) {
    const { status, end_reason: reason, ended_at: endedAt } = record
    expect(theirs?.get(callUuid)).toMatchObject({ status, end_reason: reason, ended_at: endedAt })
    expect([callUuid, endedAt]).not.toEqual([callUuid, null])
  }
  for (const { client } of story.everyone) {
    for (const { data } of client.all) {
      if (typeof data?.ended_at !== 'string') continue
      expect(ours?.get(data.call_uuid)).toMatchObject({ status: data.status, ended_at: data.ended_at })
    }
  }
}

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { someone } from '@ringwire/testkit/flows'
import { Service } from '@ringwire/testkit/service'
import { startTurnServer, type TurnServer } from '@ringwire/testkit/turn'
import { tryTurn } from '../../src/ice/turn-allocation.ts'

const old = 'the-old-secret'
const fresh = 'the-new-secret'
const answerMs = 20_000

let turns: [TurnServer, TurnServer]
let nodes: [Service, Service]
beforeAll(async () => {
  turns = await Promise.all([startTurnServer(old), startTurnServer(old)])
  const node = () => new Service(secretsAre(old))
  nodes = [node(), node()]
  await Promise.all(nodes.map((each) => each.start()))
}, 240_000)
afterAll(async () => {
  await Promise.all([...nodes.map((node) => node.dispose()), ...turns.map((turn) => turn.stop())])
})

const secretsAre = (secrets: string) => ({
  RINGWIRE_TURN_URLS: turns.map(({ url }) => url).join(),
  RINGWIRE_TURN_SECRET: secrets,
})

type Credentials = { username: string; credential: string }
async function givenBy(node: Service): Promise<Credentials> {
  const { ice_servers } = await node.issue({ user_id: someone('ann'), role: 'agent' })
  const { username = '', credential = '' } = ice_servers.at(-1) ?? {}
  return { username, credential }
}
const isOf = (secret: string, { username, credential }: Credentials) =>
  createHmac('sha1', secret).update(username).digest('base64') === credential

/** People who ask any node for a token and take its credentials to every TURN server, again and again. */
function comeAndGo(count: number) {
  const upNodes = new Set(nodes)
  const upTurns = new Set(turns)
  const refused: string[] = []
  const given: Credentials[] = []
  const underWay: Promise<void>[] = []
  let isOver = false

  async function once(): Promise<void> {
    const asked = [...upTurns]
    const node = [...upNodes][Math.floor(Math.random() * upNodes.size)] as Service
    const credentials = await givenBy(node)
    given.push(credentials)
    for (const { url } of asked) {
      const problem = await tryTurn(url, credentials, answerMs)
      if (problem !== undefined) refused.push(problem)
    }
  }
  async function again(index: number): Promise<void> {
    while (!isOver) {
      underWay[index] = once()
      await underWay[index]
    }
  }
  const work = Promise.all(Array.from({ length: count }, (_, index) => again(index)))
  return {
    refused,
    given,
    /** Nobody meets it until `work` is done, and nobody is in the middle of it. */
    async without<T extends Service | TurnServer>(it: T, work: () => Promise<void>): Promise<void> {
      const up = (it instanceof Service ? upNodes : upTurns) as Set<Service | TurnServer>
      up.delete(it)
      await Promise.all(underWay)
      await work()
      up.add(it)
    },
    async stop() {
      isOver = true
      await work
    },
  }
}

test('[KEY1] [ICE1] a new secret is added, promoted and the old one removed, and no credentials are refused', async () => {
  const people = comeAndGo(4)
  // Add: every TURN server knows both.
  for (const turn of turns) await people.without(turn, () => turn.restart([old, fresh]))
  const early = await givenBy(nodes[0])
  // Promote: nodes make credentials with the new one.
  for (const node of nodes) {
    await people.without(node, async () => {
      await node.terminate()
      await node.start(secretsAre(`${fresh},${old}`))
    })
  }
  expect([isOf(old, early), isOf(fresh, early)]).toEqual([true, false])
  // Those that were given before are good until they are over.
  for (const { url } of turns) expect(await tryTurn(url, early, answerMs)).toBeUndefined()
  // Remove, when they are.
  const made = people.given.length
  for (const turn of turns) await people.without(turn, () => turn.restart([fresh]))
  await people.stop()
  expect(people.given.slice(made).every((credentials) => isOf(fresh, credentials))).toBe(true)
  expect(people.given.length).toBeGreaterThan(10)
  expect(people.refused).toEqual([])
  for (const { url } of turns) expect(await tryTurn(url, early, answerMs)).toBe('401 Unauthorized')
}, 240_000)

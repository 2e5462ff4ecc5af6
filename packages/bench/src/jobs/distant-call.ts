// Whole calls over a slow network, and how long each of their steps takes that somebody waits for.
import { members, type Pair } from '../dialects/dialect.ts'
import { nextEvent } from '../dialects/ringwire.ts'
import { loadBetween, readLoad } from '../proc.ts'
import { dialectOf } from '../systems.ts'
import { accept, answerAndCandidates, end, invite, offerAndCandidates, type Turn, toRingwire } from './call-script.ts'
import { clientsOf, closeClients, openPairs, within } from './clients.ts'
import { type DistantCallJob, type Prepared, plainResult, type Times } from './job.ts'

const SETUP_MS = 60_000
/** A packet that is lost several times in a row delays its connection by seconds. */
const CALL_MS = 60_000
const ROUND_TRIPS = 20

const newTimes = (): Times => ({
  roundTrip: [],
  inviteToRinging: [],
  acceptToAccepted: [],
  offerToAnswer: [],
  wholeSetup: [],
})

export async function prepareDistantCall({ target, pairs: count, firstPair }: DistantCallJob): Promise<Prepared> {
  const dialect = dialectOf(target.system)
  const opening = openPairs(dialect, target, firstPair, count)
  const pairs = await within(SETUP_MS, 'Connecting', opening)
  return {
    async run({ measureMs }) {
      const times = newTimes()
      const before = readLoad(target.pid, target.core)
      const until = performance.now() + measureMs
      const lanes = pairs.map(async (pair) => {
        do await within(CALL_MS, 'A call', callOnce(pair, times))
        while (performance.now() < until)
      })
      await Promise.all(lanes)
      for (let i = 0; i < ROUND_TRIPS; i++) times.roundTrip.push(await roundTrip(target.port, dialect.way?.hostname))
      const load = loadBetween(before, readLoad(target.pid, target.core))
      return { ...plainResult(times.wholeSetup.length, load), times }
    },
    release: () => closeClients(clientsOf(pairs)),
  }
}

/** What TCP takes to connect: one round trip. */
async function roundTrip(port: number, hostname = '127.0.0.1'): Promise<number> {
  const before = performance.now()
  const socket = await Bun.connect({ hostname, port, socket: { data() {} } })
  const ms = performance.now() - before
  socket.terminate()
  return ms
}

async function callOnce(pair: Pair, times: Times): Promise<void> {
  const { caller, callee } = pair
  const began = performance.now()
  say(pair, 'caller', invite)
  pair.callUuid = String(members((await nextEvent(callee, 'call.ringing')).data).call_uuid)
  times.inviteToRinging.push(performance.now() - began)
  const accepted = performance.now()
  say(pair, 'callee', accept)
  await nextEvent(caller, 'call.accepted')
  const offered = performance.now()
  times.acceptToAccepted.push(offered - accepted)
  say(pair, 'caller', ...offerAndCandidates)
  await nextEvent(callee, 'webrtc.offer')
  say(pair, 'callee', ...answerAndCandidates)
  await nextEvent(caller, 'webrtc.answer')
  const answered = performance.now()
  times.offerToAnswer.push(answered - offered)
  times.wholeSetup.push(answered - began)
  say(pair, 'caller', end)
  await nextEvent(callee, 'call.ended')
}

function say(pair: Pair, from: 'caller' | 'callee', ...turns: Turn[]): void {
  for (const { event, data } of turns) pair[from].socket.send(toRingwire(pair, from, event, data(pair)))
}

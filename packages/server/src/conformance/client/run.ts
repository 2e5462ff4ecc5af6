/** Plays every scenario with a client that a person or a program operates by instructions, and reports. */
import { createAccess, type Target, Untestable } from '../access.ts'
import { envelopeOf } from '../heard.ts'
import { createReport, type PlayedScenario, type Report } from '../report.ts'
import { type RuleId, rulesOf, wanted } from '../rules.ts'
import { createStage } from '../service/stage.ts'
import { createRedactor, createTranscript, type Redactor, type Transcript } from '../transcript.ts'
import { createVerdicts, type Judge, Stop, type Verdicts } from '../verdicts.ts'
import { clientCallScenarios } from './calls.ts'
import { createEye, type Eye } from './eye.ts'
import { type Gate, openGate, ownSession, sessionPath, untouched } from './gate.ts'
import type { LinkObserver } from './link.ts'
import { clientMovingScenarios } from './moving.ts'
import { networkScenarios } from './network.ts'
import { type Action, actions, type ClientScenario, createClientStage, NotDone } from './stage.ts'
import { createSubject, type Subject } from './subject.ts'

export const clientScenarios: readonly ClientScenario[] = [
  ...[clientCallScenarios, clientMovingScenarios, networkScenarios].flat(),
]

/** An instruction for the operator of the client: a JSON line, or a sentence. */
export type Line =
  | {
      readonly type: 'session'
      /** Where the client finds what it takes for the service. */
      readonly url: string
      /** Where it gets a session token each time that it needs one, without a product key. */
      readonly session_url: string
      readonly client: Named
      readonly peer: Named
      readonly session: object
    }
  | { readonly type: 'scenario'; readonly name: string }
  | { readonly type: 'do'; readonly action: Action; readonly text: string }
  | { readonly type: 'over'; readonly name: string; readonly outcome: PlayedScenario['outcome']; readonly why?: string }

interface Named {
  readonly user_id: string
  readonly role: string
}

export interface ClientRun {
  readonly target: Target
  readonly roles: { readonly caller: string; readonly callee: string }
  readonly listen: { readonly host: string; readonly port: number }
  /** The user of the client; undefined: somebody new. */
  readonly userId: string | undefined
  readonly patienceMs: number
  readonly actMs: number
  readonly isSlowToo: boolean
  readonly only: readonly RuleId[]
  /** Only scenarios whose name holds this; empty: every one. */
  readonly named: string
  say(line: Line): void
}

interface Parts {
  readonly run: ClientRun
  readonly verdicts: Verdicts
  readonly redactor: Redactor
  readonly gate: Gate
  readonly subject: Subject
  readonly now: Now
  readonly client: Named
  readonly peerId: string
  readonly access: ReturnType<typeof createAccess>
}

/** The scenario that is played: what is seen meanwhile is judged and shown as part of it. */
interface Now {
  judge: Judge
  transcript: Transcript
}

export async function testClient(run: ClientRun): Promise<Report> {
  const redactor = createRedactor()
  redactor.add(run.target.keySecret)
  const access = createAccess(run.target, redactor)
  const verdicts = createVerdicts(redactor)
  const begin = performance.now()
  const started_at = new Date().toISOString()
  const mark = crypto.randomUUID().slice(0, 8)
  const client = { user_id: run.userId ?? `kit-client-${mark}`, role: run.roles.caller }
  const who = { ...client, display_name: 'Client', allowed_peer_role: run.roles.callee, device_id: 'kit-client' }
  const session = await access.issue(who)
  const subject = createSubject()
  const transcript = createTranscript(redactor)
  const now: Now = { transcript, judge: verdicts.judge('before the first scenario', transcript) }
  const eye = createEye(() => now.judge)
  const gate = await openGate({
    ...{ access, ...run.listen, wsUrl: session.ws_url },
    issue: () => access.issue(who),
    observer: observe(subject, eye, now),
    onAttempt(isRefused) {
      if (isRefused) now.transcript.note('client', 'note', 'tries to connect, and is refused')
      subject.note.attempt()
    },
  })
  try {
    const peerId = `kit-peer-${mark}`
    const urls = { url: gate.url, session_url: `${gate.url}${sessionPath}` }
    const peer = { user_id: peerId, role: run.roles.callee }
    run.say({ type: 'session', ...urls, client, peer, session: ownSession(gate, session) })
    const scenarios = await playAll({ run, verdicts, redactor, gate, subject, now, client, peerId, access })
    const duration_ms = Math.round(performance.now() - begin)
    const found = verdicts.of(run.only.length === 0 ? rulesOf(clientScenarios) : run.only)
    return createReport({ tested: 'client', url: run.target.url, started_at, duration_ms, scenarios }, found)
  } finally {
    gate.close()
  }
}

function observe(subject: Subject, eye: Eye, now: Now): LinkObserver {
  const name = 'client'
  return {
    onAnswer(link, status) {
      now.transcript.note(name, 'note', `connects to ${link.request.target}: ${status}`)
      eye.onUpgrade(link)
    },
    onUp(link, text) {
      now.transcript.note(name, 'sent', text)
      eye.onUp(link, text)
      const envelope = envelopeOf(text) as { event: string; n?: number; data?: Record<string, unknown> } | undefined
      const { event = '', n, data = {} } = envelope ?? {}
      subject.note.said({ link, at: performance.now(), event, n, data, text })
    },
    onDown(link, text) {
      now.transcript.note(name, 'received', text)
      eye.onDown(link, text)
      const heard = envelopeOf(text)
      if (heard !== undefined) subject.note.heard(heard)
      if (heard?.event === 'auth.ok') subject.note.entered(link, heard)
    },
    onPing: (_, payload) => eye.onPing(payload),
    onPong: (_, payload) => eye.onPong(payload),
    onGone(link, code) {
      if (code !== undefined) now.transcript.note(name, 'note', `closes with ${code}`)
      subject.note.gone(link, code)
    },
  }
}

async function playAll(parts: Parts): Promise<PlayedScenario[]> {
  const { run } = parts
  const played: PlayedScenario[] = []
  const all = wanted(clientScenarios, run)
  // Which kind a client is shows when it connects: what it needs for that is looked at there.
  for (const scenario of new Set([...clientScenarios.slice(0, 1), ...all])) {
    run.say({ type: 'scenario', name: scenario.name })
    const done = await play(scenario, parts)
    played.push(done)
    const { name, outcome, why } = done
    run.say({ type: 'over', name, outcome, ...(why !== undefined && { why }) })
  }
  return played
}

async function play({ name, needs, run: playScenario }: ClientScenario, parts: Parts): Promise<PlayedScenario> {
  const { run, verdicts, redactor, gate, subject, now, client, peerId, access } = parts
  const idle = (why: string): PlayedScenario => ({ name, outcome: 'not played', why, duration_ms: 0 })
  if (needs === 'time' && !run.isSlowToo) return idle('it takes a minute: --slow')
  const kind = subject.isExtended ? 'extended' : 'base'
  if ((needs === 'extended' || needs === 'base') && needs !== kind) return idle(`the client is ${kind}`)
  if (needs === 'transfer' && !subject.can.includes(needs)) return idle('the client does not list transfer')
  const transcript = createTranscript(redactor)
  now.transcript = transcript
  now.judge = verdicts.judge(name, transcript)
  // The service's behaviour is not the client's: its verdicts go nowhere.
  const others = createVerdicts(redactor).judge(name, transcript)
  const { stage: playing, leave } = createStage({ ...run, access, judge: others, transcript })
  const tell = (action: Action) => run.say({ type: 'do', action, text: actions[action] })
  const { patienceMs, actMs } = run
  const stage = createClientStage({ judge: now.judge, gate, subject, playing, client, peerId, patienceMs, actMs, tell })
  const begin = performance.now()
  const took = () => Math.round(performance.now() - begin)
  try {
    await playScenario(stage)
    return { name, outcome: 'played', duration_ms: took() }
  } catch (error) {
    if (!(error instanceof Stop || error instanceof NotDone || error instanceof Untestable)) throw error
    return { name, outcome: 'stopped', why: redactor.clean(error.message), duration_ms: took() }
  } finally {
    gate.traffic = untouched
    gate.isRefusing = false
    gate.query = (search) => search
    gate.expiresIn = undefined
    leave()
  }
}

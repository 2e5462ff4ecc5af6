/** Plays every scenario against a service, and reports. */
import { type Access, createAccess, type Target, Untestable } from '../access.ts'
import { createReport, type PlayedScenario, type Report } from '../report.ts'
import { type RuleId, rulesOf, wanted } from '../rules.ts'
import { createRedactor, createTranscript, type Redactor } from '../transcript.ts'
import { createVerdicts, Stop, type Verdicts } from '../verdicts.ts'
import { callScenarios } from './calls.ts'
import { connectingScenarios } from './connecting.ts'
import { deviceScenarios } from './devices.ts'
import { extendedScenarios } from './extended.ts'
import { groupScenarios } from './groups.ts'
import { movingScenarios } from './moving.ts'
import { relayScenarios } from './relays.ts'
import { restScenarios } from './rest.ts'
import { createStage, type Scenario } from './stage.ts'

export const serviceScenarios: readonly Scenario[] = [
  ...[restScenarios, connectingScenarios, callScenarios, deviceScenarios, relayScenarios, groupScenarios],
  ...[extendedScenarios, movingScenarios],
].flat()

export interface ServiceRun {
  readonly target: Target
  readonly roles: { readonly caller: string; readonly callee: string }
  /** How long something that has to come is waited for, in ms. */
  readonly patienceMs: number
  /** Also what takes half a minute. */
  readonly isSlowToo: boolean
  /** Only what looks at one of these rules; empty: everything. */
  readonly only: readonly RuleId[]
  /** Only scenarios whose name holds this; empty: every one. */
  readonly named: string
  onScenario(played: PlayedScenario): void
}

/** Scenarios that are played at the same time: each has people of its own. */
const atOnce = 4

export async function testService(run: ServiceRun): Promise<Report> {
  const redactor = createRedactor()
  redactor.add(run.target.keySecret)
  const access = createAccess(run.target, redactor)
  const verdicts = createVerdicts(redactor)
  const begin = performance.now()
  const started_at = new Date().toISOString()
  const isExtended = await hasExtendedMode(access, run)
  const { only } = run
  const queue = [...wanted(serviceScenarios, run)]
  const played: PlayedScenario[] = []
  const work = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const done = await play(next, run, { access, verdicts, redactor, isExtended })
      played.push(done)
      run.onScenario(done)
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  const duration_ms = Math.round(performance.now() - begin)
  const names = serviceScenarios.map(({ name }) => name)
  const scenarios = played.sort((a, b) => names.indexOf(a.name) - names.indexOf(b.name))
  const found = verdicts.of(only.length === 0 ? rulesOf(serviceScenarios) : only)
  return createReport({ tested: 'service', url: run.target.url, started_at, duration_ms, scenarios }, found)
}

interface Parts {
  readonly access: Access
  readonly verdicts: Verdicts
  readonly redactor: Redactor
  readonly isExtended: boolean
}

async function play(scenario: Scenario, run: ServiceRun, parts: Parts): Promise<PlayedScenario> {
  const { name, needs } = scenario
  const idle = (why: string): PlayedScenario => ({ name, outcome: 'not played', why, duration_ms: 0 })
  if (needs === 'extended' && !parts.isExtended) return idle('the service has no extended sessions')
  if (needs === 'time' && !run.isSlowToo) return idle('it takes half a minute: --slow')
  const { access, verdicts, redactor } = parts
  const transcript = createTranscript(redactor)
  const judge = verdicts.judge(name, transcript)
  const { stage, leave } = createStage({ ...run, access, judge, transcript })
  const begin = performance.now()
  const took = () => Math.round(performance.now() - begin)
  try {
    await scenario.run(stage)
    return { name, outcome: 'played', duration_ms: took() }
  } catch (error) {
    if (!(error instanceof Stop || error instanceof Untestable)) throw error
    return { name, outcome: 'stopped', why: redactor.clean(error.message), duration_ms: took() }
  } finally {
    leave()
  }
}

/** A service without them knows nothing of `ext`, and answers as to a base client. */
async function hasExtendedMode(access: Access, run: ServiceRun): Promise<boolean> {
  const redactor = createRedactor()
  const transcript = createTranscript(redactor)
  const judge = createVerdicts(redactor).judge('probe', transcript)
  const { stage, leave } = createStage({ ...run, access, judge, transcript })
  try {
    const { hello } = await stage.enter(stage.person('probe', 'caller'), { isExtended: true })
    return typeof hello.data.session_id === 'string'
  } catch (error) {
    if (error instanceof Stop) return false
    throw error
  } finally {
    leave()
  }
}

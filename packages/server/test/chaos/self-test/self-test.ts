import { check } from '../check/check.ts'
import { kinds } from '../check/findings.ts'
import { loadRecording, type Recording } from '../recording.ts'
import { draftOf } from './draft.ts'
import type { RecordingName } from './plant.ts'
import { plants } from './plants.ts'
import { tolerancesOfHooks } from './plants-hooks.ts'
import { type Tolerance, tolerances } from './tolerances.ts'

export interface SelfTestResult {
  readonly name: string
  /** What the checker got wrong; undefined: nothing. */
  readonly problem: string | undefined
}

/**
 * The checker proves itself on recordings of real runs: as it is nothing is wrong with it; each thing that is put in
 * wrong is reported by its kind, where it is; and what only looks wrong is not reported.
 */
export function selfTest(): SelfTestResult[] {
  const load = (name: string) => loadRecording(new URL(name, import.meta.url).pathname)
  const recordings: Readonly<Record<RecordingName, Recording>> = {
    one: load('recording.jsonl'),
    several: load('recording-nodes.jsonl'),
    embedded: load('recording-embedded.jsonl'),
  }
  const silent = ({ name, recording = 'one', change }: Tolerance): SelfTestResult => {
    const draft = draftOf(recordings[recording])
    change(draft)
    const { violations } = check(draft)
    const problem = violations.map(({ kind, text, user, call }) => `: ${kind}: ${text} (${user}, ${call})`).join('')
    return { name: `nothing is wrong: ${name}`, problem: problem === '' ? undefined : problem }
  }
  const found = plants.map(({ name, kind, recording = 'one', plant }): SelfTestResult => {
    const draft = draftOf(recordings[recording])
    const { call, user, at } = plant(draft)
    const { violations } = check(draft)
    const isReported = violations.some(
      (each) =>
        each.kind === kind &&
        (at === undefined || each.at === at) &&
        (call === undefined || each.call === call || (each.call === undefined && each.user === user)),
    )
    const others = violations.map((each) => `${each.kind} ${each.text} (${each.call})`).join('; ')
    return {
      name: `${kind}: ${name}`,
      problem: isReported ? undefined : ` is not reported; but ${others || 'nothing'}`,
    }
  })
  const planted = new Set(plants.map(({ kind }) => kind))
  const unproven = Object.keys(kinds).filter((kind) => ![...planted].some((each) => each === kind))
  return [
    silent({ name: 'the recording', change() {} }),
    silent({ name: 'the recording of several nodes', recording: 'several', change() {} }),
    silent({ name: 'the recording with endpoints', recording: 'embedded', change() {} }),
    ...[...tolerances, ...tolerancesOfHooks].map(silent),
    ...found,
    { name: 'every kind is planted', problem: unproven.length === 0 ? undefined : `: not ${unproven.join(', ')}` },
  ]
}

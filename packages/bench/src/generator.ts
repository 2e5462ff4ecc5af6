// A generator process: the main process starts it on a core of its own and speaks to it over IPC.
import { prepareCall } from './jobs/call.ts'
import { prepareCommit } from './jobs/commit.ts'
import { prepareConnect } from './jobs/connect.ts'
import { prepareDistantCall } from './jobs/distant-call.ts'
import { prepareFlood } from './jobs/flood.ts'
import { prepareGroup } from './jobs/group.ts'
import { prepareHook } from './jobs/hook.ts'
import type { Command, Job, Prepared, Reply } from './jobs/job.ts'
import { prepareRelay } from './jobs/relay.ts'
import { prepareResume } from './jobs/resume.ts'
import { prepareRing } from './jobs/ring.ts'
import { prepareTalk } from './jobs/talk.ts'
import { prepareToken } from './jobs/token.ts'
import { prepareWake } from './jobs/wake.ts'
import { TITLES } from './systems.ts'

function prepare(job: Job): Promise<Prepared> {
  switch (job.kind) {
    case 'relay':
      return prepareRelay(job)
    case 'connect':
      return prepareConnect(job)
    case 'resume':
      return prepareResume(job)
    case 'call':
      return prepareCall(job)
    case 'wake':
      return prepareWake(job)
    case 'distant-call':
      return prepareDistantCall(job)
    case 'token':
      return prepareToken(job)
    case 'ring':
      return prepareRing(job)
    case 'group':
      return prepareGroup(job)
    case 'hook':
      return prepareHook(job)
    case 'commit':
      return prepareCommit(job)
    case 'talk':
      return prepareTalk(job)
    case 'flood':
      return prepareFlood(job)
  }
}

function serve(): void {
  const jobs = new Map<number, Prepared>()
  const titles = new Map<number, string>()
  const carryOut = async (command: Command): Promise<Reply> => {
    if (command.step === 'prepare') {
      titles.set(command.id, 'target' in command.job ? TITLES[command.job.target.system] : command.job.kind)
      jobs.set(command.id, await prepare(command.job))
      return { step: 'prepared' }
    }
    const job = jobs.get(command.id)
    if (job === undefined) throw new Error('That job was not prepared')
    if (command.step === 'run') return { step: 'result', result: await job.run(command.shape) }
    jobs.delete(command.id)
    await job.release()
    return { step: 'released' }
  }
  process.on('message', (command: Command) => {
    carryOut(command)
      .catch((error: unknown): Reply => ({ step: 'failed', message: `${titles.get(command.id)}: ${String(error)}` }))
      .then((reply) => process.send?.(reply))
  })
  // The end of the main process is the end of this one.
  process.on('disconnect', () => process.exit(0))
}

serve()

/** `ringwire call …`: what the store says about calls. */
import type { Command } from 'commander'
import { createHistory } from '../services/history.ts'
import { printJson, printTable, type Surroundings, type Tones, withStore } from './command.ts'
import { name, whole } from './options.ts'

/** Of the statuses of calls. */
const tones: Tones = {
  ...{ ringing: 'good', accepted: 'good', connected: 'good' },
  ...{ missed: 'bad', rejected: 'warn', cancelled: 'warn', busy: 'warn' },
}

interface HistoryOptions {
  product: string
  user: string
  role: string
  limit: number
  cursor?: string
  json?: boolean
}

export function addCallCommands(program: Command, surroundings: Surroundings): void {
  const call = program.command('call').description('Calls in the store.')
  call
    .command('history')
    .description('The recent calls of a participant, newest first, as the participant reads them over REST.')
    .requiredOption('--product <name>', 'product namespace', name)
    .requiredOption('--user <id>', 'user_id of the participant', name)
    .requiredOption('--role <role>', 'role of the participant', name)
    .option('--limit <number>', 'how many calls at the most, 1 to 100', whole(1, 100), 30)
    .option('--cursor <cursor>', 'the next_cursor of the page before (default: the newest calls)')
    .option('--json', 'print JSON, as the REST answer, instead of text')
    .action((options) => history(surroundings, options))
}

async function history(surroundings: Surroundings, options: HistoryOptions): Promise<void> {
  const { product, user, role, limit, cursor, json } = options
  const page = await withStore(surroundings, (store) =>
    createHistory({ calls: store.calls }).page({ product, role, userId: user }, { limit: String(limit), cursor }),
  )
  if (json) return printJson(surroundings, { success: true, ...page })
  if (page.data.length === 0) return surroundings.err('No calls.\n')
  const rows = page.data.map((record) => [
    record.started_at,
    record.direction,
    record.status,
    record.end_reason ?? '',
    record.duration_ms === null ? '' : `${Math.round(record.duration_ms / 1000)} s`,
    `${record.peer.role}/${record.peer.user_id}`,
    record.call_uuid,
  ])
  printTable(surroundings, ['STARTED', 'DIRECTION', 'STATUS', 'REASON', 'LASTED', 'PEER', 'CALL'], rows, tones)
  if (page.next_cursor !== null) surroundings.err(`More with --cursor ${page.next_cursor}\n`)
}

/** `ringwire audit`: what operators, backends and commands changed [ADM3]. */
import type { Command } from 'commander'
import { type AuditView, auditPage } from '../audit/page.ts'
import { printJson, printTable, type Surroundings, withStore } from './command.ts'
import { name, whole } from './options.ts'
import { shownTime, withExact } from './times.ts'

interface AuditOptions {
  product?: string
  limit: number
  cursor?: string
  exact?: boolean
  json?: boolean
}

export function addAuditCommand(program: Command, surroundings: Surroundings): void {
  withExact(program.command('audit'))
    .description('What operators, backends and commands changed, newest first: who, when, and what.')
    .option('--product <name>', 'only changes of this product (default: all)', name)
    .option('--limit <number>', 'how many changes at the most, 1 to 100', whole(1, 100), 30)
    .option('--cursor <cursor>', 'the next_cursor of the previous page (default: the newest changes)')
    .option('--json', 'print the JSON of the REST answer instead of text')
    .action((options) => audit(surroundings, options))
}

async function audit(surroundings: Surroundings, options: AuditOptions): Promise<void> {
  const { product, limit, cursor, exact, json } = options
  const page = await withStore(surroundings, (store) => auditPage(store.audit, { product, limit, cursor }))
  if (json) return printJson(surroundings, { success: true, ...page })
  if (page.data.length === 0) return surroundings.err('No changes.\n')
  const rows = page.data.map((entry) => [shownTime(surroundings, entry.at, exact), ...cellsOf(entry)])
  printTable(surroundings, ['WHEN', 'BY', 'CHANGE', 'PRODUCT', 'OF', 'DETAIL'], rows)
  if (page.next_cursor !== null) surroundings.err(`More with --cursor ${page.next_cursor}\n`)
}

function cellsOf({ by, action, product, participant, subject, detail }: AuditView): string[] {
  const whom = participant === null ? '' : `${participant.role}/${participant.user_id || '(erased)'}`
  const said = Object.entries(detail).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  return [`${by.kind} ${by.name}`.trim(), action, product ?? '', whom || (subject ?? ''), said.join(' ')]
}

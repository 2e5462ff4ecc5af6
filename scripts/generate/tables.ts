import { closeCodes } from '@ringwire/protocol/close-codes'
import { type ErrorDefinition, errors, limitNames } from '@ringwire/protocol/errors'
import { settingRows } from '../../packages/server/src/config.ts'

export const printed = '<!-- Printed from the code by `npm run generate`. -->'

/** A table of Markdown; what would break a row is escaped. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((it) => it.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(heads), `|${heads.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n')
}

export const code = (text: string | number) => `\`${text}\``

export function page(title: string, ...parts: readonly string[]): string {
  return `${[printed, `# ${title}`, ...parts].join('\n\n')}\n`
}

export function errorsPage(): string {
  const all = Object.entries<ErrorDefinition>(errors)
  const rows = (entries: typeof all) =>
    entries.map(([name, { status, retryable, message }]) => [
      code(name),
      status === undefined ? '' : String(status),
      retryable ? 'yes' : '',
      message,
    ])
  const heads = ['Code', 'HTTP status', 'Retryable', 'Message']
  return page(
    'Error codes',
    'Programs read the code; the message is for people and may say more than what stands here. Retryable: the same ' +
      'request may succeed later, unchanged.',
    '## REST and the WebSocket handshake',
    'The body is `{"success": false, "error": {"code", "message"}}`. 429 carries `Retry-After`.',
    table(heads, rows(all.filter(([, it]) => it.where !== 'ws'))),
    '## WebSocket',
    'The error object of `call.error` has `code` and `message`, and where it applies `field` (what is wrong), `status` ' +
      '(of the call), `call_uuid` (of the call that waits), `retryable`, `retry_after_ms` and `limit` ' +
      `(in every \`RATE_LIMITED\`: ${limitNames.map(code).join(', ')}).`,
    table(
      ['Code', 'Retryable', 'Message'],
      rows(all.filter(([, it]) => it.where !== 'rest')).map(([name = '', , retryable = '', message = '']) => [
        name,
        retryable,
        message,
      ]),
    ),
  )
}

export function closeCodesPage(): string {
  const rows = Object.entries(closeCodes).map(([number, { name, meaning, reconnect }]) => [
    code(number),
    name,
    meaning,
    reconnect ? 'yes' : 'no',
  ])
  return page(
    'WebSocket close codes',
    table(['Code', 'Name', 'Meaning', 'Connect again'], rows),
    'Any other code, 1006 above all, means that the connection just went away: connect again. The exceptions are 1002, ' +
      '1003, 1007 and 1008, by which an endpoint calls what the client sent wrong.',
    'Connect again with growing pauses and some chance in them.',
  )
}

export function configurationPage(): string {
  const rows = settingRows().map(({ name, type, default: unset, unit, secret, description }) => [
    code(name),
    unit === '' ? type : `${type}, ${unit}`,
    /^unset\b/.test(unset) || unset === 'random' ? unset : code(unset),
    secret ? `${description} Secret: it is never shown.` : description,
  ])
  return page(
    'Configuration',
    'Environment variables, all optional. An empty one counts as unset. A bad value stops the start, with one line per ' +
      'problem that names the variable. `ringwire config check` says what every setting is.',
    table(['Variable', 'Type', 'Default', 'Meaning'], rows),
  )
}

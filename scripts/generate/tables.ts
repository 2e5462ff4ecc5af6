import { fileVariable, settingRows } from '../../packages/server/src/config/config.ts'

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

export function configurationPage(): string {
  const rows = settingRows().map(({ name, type, default: unset, unit, secret, hasFile, description }) => [
    code(name),
    unit === '' ? type : `${type}, ${unit}`,
    /^unset\b/.test(unset) || unset === 'random' ? unset : code(unset),
    [
      description,
      ...(secret ? ['Secret: it is never shown.'] : []),
      ...(hasFile ? [`Or in the file that ${code(fileVariable(name))} names.`] : []),
    ].join(' '),
  ])
  return page(
    'Configuration',
    'Environment variables, all optional. An empty one counts as unset. A bad value stops the start, with one line per ' +
      'problem that names the variable. `ringwire config check` says what every setting is.',
    table(['Variable', 'Type', 'Default', 'Meaning'], rows),
  )
}

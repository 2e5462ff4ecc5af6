/** @jsxImportSource preact */
import { useState } from 'preact/hooks'
import { ask } from './ask.ts'
import { useAsked } from './hooks.ts'
import { Head, Problem } from './parts.tsx'

interface Setting {
  readonly name: string
  readonly value: string
  readonly source: 'set' | 'default'
}

/** The settings that this node runs with. */
export function SettingsView() {
  const [isAll, setAll] = useState(false)
  const { data, problem } = useAsked('settings', () => ask<{ data: readonly Setting[] }>('settings'))
  const shown = data?.data.filter(({ source }) => isAll || source === 'set') ?? []
  return (
    <>
      <Head title="Settings">
        <label class="check">
          <input type="checkbox" checked={isAll} onChange={({ currentTarget }) => setAll(currentTarget.checked)} />
          also those that are not set
        </label>
      </Head>
      <Problem text={problem} />
      <div class="panel scroll">
        <table data-testid="settings">
          <thead>
            <tr>
              <th scope="col">Setting</th>
              <th scope="col">Value</th>
            </tr>
          </thead>
          <tbody>
            {shown.map(({ name, value, source }) => (
              <tr key={name}>
                <td>
                  <code>{name}</code>
                </td>
                <td class="any">
                  {value === '' ? <span class="soft">not set</span> : value}{' '}
                  {source === 'default' && <span class="badge">default</span>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="soft">
        They are read when the node starts, from its environment. Secrets are not shown.{' '}
        <code>ringwire config list</code> explains each.
      </p>
    </>
  )
}

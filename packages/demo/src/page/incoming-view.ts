import { byId, paintAvatar } from './dom.ts'
import { type Line, peerOf } from './phone.ts'

/**
 * The incoming call as a modal dialog: the rest of the page is out of reach, Accept has the focus (Enter), and Escape
 * is what a dialog already has for "no".
 */
export function createIncomingView(onAccept: () => void, onReject: () => void) {
  const dialog = byId('incoming', HTMLDialogElement)
  let shown = false

  byId('accept', HTMLButtonElement).addEventListener('click', onAccept)
  byId('reject', HTMLButtonElement).addEventListener('click', onReject)
  dialog.addEventListener('cancel', (event) => event.preventDefault())
  dialog.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return
    event.preventDefault()
    onReject()
  })
  // A back gesture closes a dialog without a key.
  dialog.addEventListener('close', () => {
    if (shown) onReject()
  })

  return {
    render(line: Line | undefined): void {
      const wanted = line?.phase === 'incoming'
      if (wanted && !shown) {
        const { display_name, role } = peerOf(line)
        paintAvatar(byId('incoming-avatar', HTMLElement), display_name)
        byId('incoming-name', HTMLElement).textContent = display_name
        byId('incoming-about', HTMLElement).textContent =
          `${line.call.callType === 'video' ? 'Video' : 'Audio'} call · ${role}`
        shown = true
        dialog.showModal()
      } else if (!wanted && shown) {
        shown = false
        dialog.close()
      }
    },
  }
}

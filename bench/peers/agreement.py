"""Whether logits agree: ooc's and the peers', from the same checkpoint."""

import shutil
import subprocess
import sys

import environment

LARGEST = 1e-4  # difference, over the largest logit
EPOCHS = 5
MODELS = ("gcn", "sage", "gin", "gat", "gatv2")


def run(*command):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stderr}")


def check(options, python, peers, dataset, arrays, shape_of):
    """The largest differences, by model, peer and form of the graph."""
    run_dir, logits = options.work / "run-agreement", options.work / "logits.npy"
    differences = {}
    for model in MODELS:
        arguments, worker_arguments = shape_of(model)
        shutil.rmtree(run_dir, ignore_errors=True)
        run(options.programs / "ooc-train", dataset, "--run-dir", run_dir, "--quiet", "--epochs",
            EPOCHS, *arguments)
        checkpoint = run_dir / f"checkpoint-{EPOCHS}.h5"
        run(options.programs / "ooc-infer", dataset, "--checkpoint", checkpoint, "-o", logits,
            "--what", "logits", "--force", "--quiet")
        for peer, traits in peers.items():
            for form in traits["forms"][model]:
                reply = environment.ask(
                    python, "logits", peer, model, arrays, "--form", form, *worker_arguments,
                    "--checkpoint", checkpoint, "--logits", logits)
                differences.setdefault(model, {}).setdefault(peer, {})[form] = reply
    shutil.rmtree(run_dir, ignore_errors=True)
    logits.unlink(missing_ok=True)
    return differences


def print_table(differences):
    """True if all agree."""
    fine = True
    print("\nLogits from the same weights: largest difference over the largest logit, at most "
          f"{LARGEST:g}\n\n| model | peer | graph as | difference |\n|---|---|---|---|")
    for model, peers in differences.items():
        for peer, forms in peers.items():
            for form, reply in forms.items():
                text = reply.get("error") or f"{reply['difference']:.1e}"
                good = reply.get("difference", 1) <= LARGEST
                fine = fine and good
                print(f"| {model} | {environment.PEERS[peer]} | {form} "
                      f"| {text}{'' if good else ' **does not agree**'} |")
    return fine

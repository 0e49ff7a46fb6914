"""Writes tiny random checkpoints of BLEURT, RadGraph and CheXbert.

Runs in the environment of legacy metrics.

python make_legacy.py FOLDER: makes FOLDER/bleurt, FOLDER/radgraph/radgraph, FOLDER/chexbert.
"""

import json
import sys
from pathlib import Path

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
WORDS = [
    "the",
    "patient",
    "has",
    "pain",
    "no",
    "acute",
    "finding",
    "lungs",
    "are",
    "clear",
    "effusion",
    "left",
    "right",
    "pneumonia",
    "heart",
    "normal",
    "size",
]


def write_vocabulary(folder):
    """Write a WordPiece vocabulary and a small BERT configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    marks = list(".,:;-/()")
    pieces = [*WORDS, *LETTERS, *(f"##{c}" for c in LETTERS), *marks]
    tokens = list(dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces]))
    (folder / "vocab.txt").write_text("\n".join(tokens) + "\n")
    return dict(
        vocab_size=len(tokens),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=512,
    )


def write_bert(folder):
    """Write a tiny random BERT with its tokenizer."""
    import transformers

    size = write_vocabulary(folder)
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    transformers.BertModel(transformers.BertConfig(**size)).save_pretrained(folder)


def write_bleurt(folder):
    from bleurt_pytorch import BleurtConfig, BleurtForSequenceClassification, BleurtTokenizer

    size = write_vocabulary(folder)
    BleurtTokenizer(str(folder / "vocab.txt"), model_max_length=512).save_pretrained(folder)
    BleurtForSequenceClassification(BleurtConfig(**size, num_labels=1)).save_pretrained(folder)


def write_radgraph(folder):
    import torch
    from dotmap import DotMap
    from radgraph.allennlp.data import Vocabulary
    from radgraph.allennlp.modules import text_field_embedders, token_embedders
    from radgraph.dygie.models import dygie

    bert = folder / "bert"
    write_bert(bert)
    place = folder / "radgraph"
    (place / "vocabulary").mkdir(parents=True)
    (place / "vocabulary/non_padded_namespaces.txt").write_text("*tags\n*labels\n")
    labels = ["", "ANAT-DP", "OBS-DP", "OBS-U", "OBS-DA"]
    (place / "vocabulary/radgraph__ner_labels.txt").write_text("\n".join(labels) + "\n")
    relations = ["", "located_at", "modify", "suggestive_of"]
    (place / "vocabulary/radgraph__relation_labels.txt").write_text("\n".join(relations) + "\n")
    reader = {"model_name": str(bert), "max_length": 512}
    config = {
        "dataset_reader": {"max_span_width": 4, "token_indexers": {"bert": reader}},
        "model": {
            "type": "dygie",
            "embedder": {"token_embedders": {"bert": reader}},
            "initializer": {},
            "module_initializer": {},
            "modules": {
                "ner": {},
                "coref": {"spans_per_word": 0.3, "max_antecedents": 20},
                "relation": {"spans_per_word": 0.5},
                "events": {"trigger_spans_per_word": 0.3, "argument_spans_per_word": 0.8},
            },
            "feature_size": 8,
            "max_span_width": 4,
            "target_task": "relation",
            "feedforward_params": {"num_layers": 2, "hidden_dims": 16, "dropout": 0.0},
            "loss_weights": {"ner": 0.2, "relation": 1.0, "coref": 0.0, "events": 0.0},
        },
        "vocabulary": {},
    }
    (place / "config.json").write_text(json.dumps(config))
    vocabulary = Vocabulary.from_files(str(place / "vocabulary"))
    embedder = text_field_embedders.BasicTextFieldEmbedder(
        {"bert": token_embedders.PretrainedTransformerMismatchedEmbedder(**reader)}
    )
    model = dict(DotMap(config).model)
    for name in ("type", "embedder", "initializer", "module_initializer"):
        del model[name]
    made = dygie.DyGIE(vocab=vocabulary, embedder=embedder, **model)
    torch.save(made.state_dict(), place / "weights.th")


def write_chexbert(folder):
    import torch
    from f1chexbert.f1chexbert import bert_labeler

    write_bert(folder / "bert-base-uncased")
    import os

    os.chdir(folder)
    made = bert_labeler(inference=True)
    torch.save({"model_state_dict": made.state_dict()}, folder / "chexbert.pth")


if __name__ == "__main__":
    import torch

    torch.manual_seed(5)
    root = Path(sys.argv[1]).resolve()
    write_bleurt(root / "bleurt")
    write_radgraph(root / "radgraph")
    write_chexbert(root / "chexbert")
